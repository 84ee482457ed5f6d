"""Fuzz of the server: random bytes of both protocols on many connections, and one client that must not be affected.

`messages.py` generates requests, `replies.py` reads replies, `other_clients.py` is the client that must not be affected,
`live.py` runs them against a server, `parsers.py` tests the parsers alone. No code of kvref's parsers is used.
"""
