"""Where rows live: each store answers the operations of `kvref.semantics.ports` and reads the configuration schema.

`catalog.py` checks containers rows (any store), `sqlite.py` is the embedded store, `sqlite_schema.py` reads its tables.
"""
