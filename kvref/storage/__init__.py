"""Where rows live: each store answers the operations of `kvref.engine.operations` and reads the configuration schema.

`base.py` is the interface of a store, `stores.py` opens the store of a DSN. `config` turns rows of the configuration
schema into mappings, for any store: `config/catalog.py` reads the schema, `config/containers.py` checks its rows.
`sqlite` is the embedded store, `mysql` the one over a MySQL or MariaDB server, `memory.py` the one for demonstrations
and tests.
"""
