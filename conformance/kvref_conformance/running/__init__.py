"""One run of the suite: its options, the selection of cases, several instances, and what it opens and reports."""
