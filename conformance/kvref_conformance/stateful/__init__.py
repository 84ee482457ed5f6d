"""Stateful tests: hypothesis draws conversations, the reference model (`kvref_conformance.model`) gives the replies.

`commands`: commands on one or two connections. `concurrency`: three connections with batches and locks, and SQL.
`arguments`: plain memcached with any arguments. `schemas`: any table and any row of `containers`.
`command_rules.py` has the rules of the first two, `kvref_conformance.strategies` the tables and values of the last.
`player.py` sends and compares, `examples.py` looks for one thing after the other, `as_case.py` writes what was found.
"""
