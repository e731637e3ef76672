"""Estimators with scikit-learn's API: validate, call, store."""
