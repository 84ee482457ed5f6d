"""Stateful tests: hypothesis draws conversations, the reference model (`kvref_conformance.model`) gives the replies.

`commands.py`: commands of all protocols on two connections, and any arguments on plain memcached. `concurrency`: three
connections with batches and locks, and SQL. `schemas`: any table and any row of `containers`. `command_rules.py` has
the rules of the first two, `kvref_conformance.strategies` the tables and values of the last. `modelled.py` makes each
step of the model one of a case, which `kvref_conformance.judging.conversation` takes and judges; `examples.py` looks
for one thing after the other, `as_case.py` writes what was found. Begin with `generated.py`, which has the chapters.
"""
