"""Section 4 of the paper as one resumable run: a plan of small jobs, a results file, and the report made from it."""
