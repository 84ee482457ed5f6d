"""Where rows live: each store answers the operations of `kvref.semantics.ports` and reads the configuration schema.

`catalog.py` reads that schema and `containers.py` checks its rows (any store); `sqlite.py` is the embedded store,
`sqlite_schema.py` reads its tables. `details.py` is what else a table has, for those who explain a configuration.
"""
