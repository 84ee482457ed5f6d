"""Several processes that serve one port: a parent, which takes connections and hands them on, and its workers.

Read `refusals.py` (what several processes cannot serve), `memory.py` (what they share), `parent.py`, `worker.py`.
"""
