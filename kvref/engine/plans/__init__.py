"""Commands on rows as data, and functions without I/O, clock and SQL that decide them.

`plan.py` has the types; each other module decides a family of verbs. A decider takes cas numbers, and appends what it
counts and changes to its `Bound`, which the scheduler settles, or discards with a group that has failed.
"""
