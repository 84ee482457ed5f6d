"""Who may connect, and to what: listeners, TLS, and users by memcached's own means.

Read `listener.py` (one listener), `configuration.py` (listeners of a configuration file, and which are refused),
`authentication.py` and `users.py`, `attempts.py` and `foreign.py` (refused clients, counted and logged), `tls.py`,
`tls_handshakes.py`, `sockets.py`, `socket_activation.py`.
"""
