"""Section 4 of the paper as one resumable run: a plan of small jobs, a results file, and what is read from it."""
