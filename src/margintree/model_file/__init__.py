"""The model file: fitted estimators in one safe, checked and mappable file."""
