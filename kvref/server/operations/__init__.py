"""Running kvref: its log, metrics and health over HTTP, what systemd passes and is told, what the start prints.

Nothing here is asked on the way of a command. Start reading at `tally.py`, then `pulse.py` and `health.py`.
"""
