"""Rows read through the HandlerSocket of MariaDB. Start reading at `reads.py`."""
