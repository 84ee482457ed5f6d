"""Stateful tests: hypothesis draws conversations, a model gives the allowed replies.

`commands`: commands on one or two connections. `concurrency`: three connections with batches and locks, and SQL.
`arguments`: plain memcached with any arguments. `schemas`: any table and any row of `containers`.
"""
