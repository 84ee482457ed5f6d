"""The SQL leg: prepared statements on the generator's own sockets.

A driver would be measured with the server. For a SELECT by key of 100 bytes on one connection PyMySQL 1.2 used 30 to 42
us of CPU and had 9,200 to 15,100 answers a second; this room used 12.1 to 15.8 us, three quarters of it in the kernel,
and had 15,600 to 31,200 (MySQL 8.0.33 and MariaDB 10.11, in turn, eight times, on two shared cores). Nor has PyMySQL
prepared statements, which the articles had.

So PyMySQL logs in, which it can in all ways there are, and its socket is taken over. Each connection prepares the
work's statements. Each COM_STMT_EXECUTE is encoded before the clock starts, and so is the reply that a read should
have: the bytes around a row are read from the server once. Several in one write are answered one after the other.

Reading path: `login.py` (DSNs), `packets.py` (frames and statements), `connection.py` (prepare, execute), `codec.py`
(verbs, replies and outcomes).
"""

from kvref_bench.sql.codec import plan_of

__all__ = ["plan_of"]
