"""The executor over a SQLite file: one event loop, one commit for the writes of many connections."""
