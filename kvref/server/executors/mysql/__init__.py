"""The executor over a database server: a pool of connections, and batchers of the reads and writes of many commands."""
