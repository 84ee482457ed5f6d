"""The asyncio shell on uvloop: sockets, the clock, signals and the commit at the end of each event-loop tick.

Read `settings.py`, `executors` (operations to the store, parked writes, group commit), `connection.py`, `server.py`.
`listeners` has sockets, users and TLS, `telemetry` log, metrics and health, `workers` several processes of one port.
"""
