"""Statements of MySQL translated for SQLite, so that dumps and recorded statements work on a SQLite file.

Start reading at `translate.py`; `session.py` is a connection that translates. Needs the extra `doctor`.
"""
