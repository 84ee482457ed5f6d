"""Reports over time: a folder that keeps them by endpoint, date and version, and what changed from run to run.

`archive.py` keeps and reads reports, `changes.py` compares the last run with those before it, and every other module
writes one format.
"""
