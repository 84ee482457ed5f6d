"""Who may connect, and to what: listeners, TLS, and users by memcached's own means.

Read `listener.py` (a listener, also from a configuration file), `authentication.py`, `tls_handshakes.py` and
`sockets.py`.
"""
