"""Several processes that serve one port: a parent, which accepts connections and passes them on, and its workers.

Read `plan.py` (what workers are forked with), `shared_memory.py`, `shared_state.py`, `parent.py`, `worker.py`.
"""
