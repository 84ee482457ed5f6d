"""Follow the binary log of a MySQL or MariaDB server as a replica does, to learn which rows have changed.

`follower.py` is the connection and its thread, `events.py` reads events, `positions.py` compares positions in the log,
`local_log.py` finds the end of the log in its file, `eligibility.py` says which mappings are cached,
`row_cache.py` keeps rows for gets and drops those that events name.
"""
