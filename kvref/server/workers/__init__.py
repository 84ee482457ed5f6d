"""Several processes that serve one port: a parent, which takes connections and hands them on, and its workers.

Read `refusals.py` (what several processes cannot serve), `shared_memory.py`, `parent.py`, `worker.py`.
"""
