"""Statements of MySQL translated for SQLite, so that recorded statements work on a SQLite file.

Start reading at `translate.py`; `session.py` is a connection that translates. Needs the extra `conformance`.
"""
