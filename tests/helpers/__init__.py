"""What tests of several folders share. What one folder needs alone is in that folder.

| module | what it has |
|---|---|
| `tiers` | pytest hooks: the mark `unit`, the order of tests, and the guard that unit tests start no program |
| `harness` | semantics and storage in this process, without a socket: bytes in, bytes out, over a SQLite file |
| `serving` | a `kvref serve` of its own for a test; requests in text and binary |
| `commands` | another command of kvref, run to its end |
| `warm` | the processes of both, forked from one that has loaded kvref |
| `clocked` | a server in this process whose clock the test moves |
| `live` | servers of the target manager (MySQL, MariaDB, plugins, memcached), and parameters that only the nightly tier runs |
| `database` | a SQL server with the plugin's schema, for kvref over InnoDB; mapped tables, statements |
| `waiting` | waits for an event: a listening port, a condition, the end of a process |
| `proxy`, `answering` | a TCP proxy that cuts or delays; a server that always sends the same bytes |
| `http_client` | metrics and health of a server, requested as a scraper does |
| `faulty`, `faking` | servers with defects for the suite, and runs of the suite against them |
| `row_cache_checker` | random and concurrent steps that find a stale row of the cache over a database; also a program |
| `statements` | MySQL statements with their results, for the translation to SQLite |
| `reports`, `points` | a report of the suite and points of a benchmark, without running any |
| `guide` | the commands of a guide in Markdown, run in one shell, and the output that the page shows |
| `example_packages` | the Python packages that the examples need |
| `bare_debian` | a bare Debian 12 in a folder |
| `browser` | a page as a browser shows it after its scripts have run |
"""
