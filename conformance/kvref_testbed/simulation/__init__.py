"""A deterministic simulation of the server: thousands of worlds, each decided by a seed.

The code of the server is the real one: `Server`, its connections, executors, group commits, batches, idle commits and
timeouts, and SQLite; over a database server the pool, transactions, retries and common statements. Its surroundings are
simulated: event loop, threads and clocks (`loop.py`), network (`network.py`), the durability of the disk (`disk.py`),
sessions and row locks of a database server (`database.py`), and clients (`clients.py`). `plan.py` draws all that
happens in a world from its seed, `world.py` runs it, `specification.py` and `order.py` judge replies and rows,
`shrink.py` makes a failing plan smaller.

Not simulated: the SQL for MySQL and MariaDB and what follows their binary log, several worker processes, TLS and
authentication, the binary protocol, meta commands, a reload, checkpoints of the write-ahead log, and a disk that
forgets writes after an error.

Libraries: `simloop` and `simloom` need Python 3.12, where kvref supports 3.11; they and `seedloop` shuffle asyncio's
ready queue, an order that asyncio guarantees and the server relies on, and have no disk. `looptime` moves the time of
a real loop with real sockets and threads. What is left of a loop of our own is a selector that moves the clock.
"""
