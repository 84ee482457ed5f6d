"""Semantics of commands, without I/O, clock or SQL: operations are yielded to the caller, `now` is an argument.

Read `mapping.py` (containers and the `@@` word), `values.py` (columns), `operations.py` (operations), then
`session.py` (one connection), `dispatch.py` (commands to verbs) and the verbs in `verbs/`. The cache policies come
between a command and its verb: `cache/dispatch.py`, with the memory cache in `cache/memory.py`.
"""
