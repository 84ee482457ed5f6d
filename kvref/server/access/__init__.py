"""Who may connect, and to what: listeners, TLS, and users by memcached's own means.

Read `listener.py` (what a listener is), `configured.py` (where listeners are named, and which are refused), `gate.py`
(what is answered to a client that has not proven who it is), `users.py`, `attempts.py`, `foreign.py` (clients
of other protocols), `tls.py`, `handshakes.py`, `sockets.py`.
"""
