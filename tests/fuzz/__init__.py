"""Fuzz of the server: any bytes of both protocols, on many connections, beside one that must not notice.

`messages.py` makes what is sent, `replies.py` reads what is answered, `neighbour.py` is the one that must not notice,
`live.py` runs them against a server, `parsers.py` looks at the parsers alone. No code of kvref's parsers is used.
"""
