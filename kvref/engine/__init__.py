"""Semantics of commands, without I/O, clock or SQL: operations are yielded to the caller, `now` is an argument.

In all signatures `session` is the state of the connection, `rules` are the facts of the profile, `now` is UNIX time in
whole seconds, `word` is a key as the client sent it, `exptime` is a time as the client sent it, and `mapping` is the
one whose rows are meant.

Read `mapping.py` (containers and the `@@` word), `values.py` (columns), `operations.py` (operations), then
`session.py` (one connection), `items/` (rules of single items), `plans/` (decisions on rows), `dispatch.py` (from
commands to their steps) and `steps/`. The cache policies come between a command and its steps: `cache/dispatch.py`,
with the memory cache in `cache/memory.py`.
"""
