"""The SQL leg: prepared statements on the generator's own sockets, and how a SQL server is reached."""
