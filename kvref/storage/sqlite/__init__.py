"""The embedded store over one SQLite file.

Read `store.py` (one connection, one write transaction between two commits), then `transactions.py`
(batches of several connections), `rows.py` and `statements.py` (SQL), `schema.py` (tables and columns).
"""
