"""The asyncio shell on uvloop: sockets, the clock, signals and commits that connections share.

Read `settings.py`, `executors` (operations to the store, parked writes, group commit), `connection.py`, `server.py`.
`listeners` has sockets, users and TLS, `telemetry` log, metrics and health, `workers` several processes of one port.
"""
