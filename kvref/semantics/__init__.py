"""What a command means. No I/O, no clock, no SQL: rows are asked for by yielding operations, `now` is an argument.

Read `mapping.py` (containers), `keys.py` (the `@@` word), `values.py` (columns), `ports.py` (operations), then
`session.py` and the verbs it dispatches to: `retrieve.py`, `store.py`, `arithmetic.py`, `change.py`. Between a command
and its verb stand the cache policies: `through.py`, with the memory cache in `cache.py`, its verbs in `cache_verbs.py`.
"""
