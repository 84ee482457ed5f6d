"""A small memcached with its own faults, one for each verdict: `python faulty_server.py PORT FAULT...`.

Faults: crash (at append), hang (at prepend), flaky (every second add is refused), slow (replace takes six seconds),
race (incr writes a while after it has read), touchy (ends at touch), wrong (a get of a missing key answers an empty value).
"""

from __future__ import annotations

import os
import socketserver
import sys
import time

ITEMS: dict[bytes, tuple[bytes, bytes]] = {}
FAULTS = frozenset(sys.argv[2:])
COUNT = [0]
STORES = (b"set", b"add", b"replace", b"append", b"prepend")


class Connection(socketserver.StreamRequestHandler):
    """Answers one connection."""

    disable_nagle_algorithm = True

    def handle(self) -> None:
        """Read line by line until the other side closes."""
        while line := self.rfile.readline():
            words = line.split()
            if words and words[0] == b"touch" and "touchy" in FAULTS:
                os._exit(3)
            if not words or words[0] == b"quit":
                return
            if not hasattr(self, f"on_{words[0].decode('latin-1')}") and words[0] not in STORES:
                answer = b"ERROR\r\n"
            elif words[0] in STORES:
                answer = self.store(words, self.rfile.read(int(words[4]) + 2)[:-2])
            else:
                answer = getattr(self, f"on_{words[0].decode()}")(words)
            self.wfile.write(b"" if words[-1] == b"noreply" else answer)

    def on_version(self, _: list[bytes]) -> bytes:
        """Answer the sentinel."""
        return b"VERSION 1.6.0\r\n"

    def on_stats(self, _: list[bytes]) -> bytes:
        """Return the process."""
        return b"STAT pid %d\r\nSTAT uptime 1\r\nSTAT curr_items %d\r\nEND\r\n" % (os.getpid(), len(ITEMS))

    def on_get(self, words: list[bytes]) -> bytes:
        """Answer values."""
        found = [(key, *ITEMS[key]) for key in words[1:] if key in ITEMS]
        if "wrong" in FAULTS and not found:
            found = [(words[1], b"0", b"")]
        return b"".join(b"VALUE %s %s %d\r\n%s\r\n" % (k, f, len(v), v) for k, f, v in found) + b"END\r\n"

    def on_delete(self, words: list[bytes]) -> bytes:
        """Delete."""
        return b"NOT_FOUND\r\n" if ITEMS.pop(words[1], None) is None else b"DELETED\r\n"

    def on_incr(self, words: list[bytes], sign: int = 1) -> bytes:
        """Count, padded with blanks as memcached does."""
        if words[1] not in ITEMS:
            return b"NOT_FOUND\r\n"
        flags, value = ITEMS[words[1]]
        if not value.strip().isdigit():
            return b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
        new = b"%d" % max(
            0, (int(value) + sign * int(words[2])) % (1 << 64) if sign > 0 else int(value) - int(words[2])
        )
        if "race" in FAULTS:
            time.sleep(0.002)  # another client is answered meanwhile
        ITEMS[words[1]] = (flags, new.ljust(len(value)))
        return new + b"\r\n"

    def on_decr(self, words: list[bytes]) -> bytes:
        """Count down."""
        return self.on_incr(words, -1)

    def store(self, words: list[bytes], data: bytes) -> bytes:
        """Store, with the faults."""
        verb, key = words[0], words[1]
        if verb == b"append" and "crash" in FAULTS:
            os._exit(3)
        if verb == b"prepend" and "hang" in FAULTS:
            time.sleep(3600)  # until it is killed
        if verb == b"replace" and "slow" in FAULTS:
            time.sleep(6)  # longer than the judge waits
        if verb == b"add" and "flaky" in FAULTS:
            COUNT[0] += 1
            if COUNT[0] % 2:
                return b"NOT_STORED\r\n"
        if (key in ITEMS) == (verb == b"add") and verb != b"set":
            return b"NOT_STORED\r\n"
        before = ITEMS.get(key, (words[2], b""))[1]
        flags = ITEMS[key][0] if key in ITEMS and verb in {b"append", b"prepend"} else words[2]
        joined = {b"append": before + data, b"prepend": data + before}.get(verb, data)
        ITEMS[key] = (flags, joined)
        return b"STORED\r\n"


class Server(socketserver.ThreadingTCPServer):
    """Listens where the one before it did."""

    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    with Server(("127.0.0.1", int(sys.argv[1])), Connection) as server:
        server.serve_forever()
