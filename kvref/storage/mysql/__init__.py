"""The store over a MySQL or MariaDB server.

Read `store.py`, `connection.py` (one connection and its transaction), `rows.py` and `statements.py` (SQL), `schema.py`
(tables and columns), `cluster.py` (which server of a DSN is used).
"""
