"""Running kvref: its log, metrics and health over HTTP, the lifecycle for systemd, the report of the start.

No command waits for anything here. Start reading at `event_counters.py`, then `lifecycle.py` and `metrics.py`.
"""
