"""Commands on rows as data, and functions without I/O, clock and SQL that decide them.

`plan.py` has the types, `bound.py` what the deciders of a mapping share; `retrieve.py`, `store.py`, `arithmetic.py`,
`meta.py` and `frames.py` (binary) decide families of verbs, `deciders.py` has those of one mapping. A decider takes
cas numbers, and appends what it counts and changes to its `Bound`, which the scheduler settles, or discards with a
group that has failed.
"""
