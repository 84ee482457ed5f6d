"""Counters of `stats`."""

import os
import resource
import time
from collections import defaultdict
from dataclasses import dataclass, field

VERSION = "0.2.0"

ROWS = ("pid uptime time version libevent pointer_size rusage_user rusage_system daemon_connections max_connections "
        "curr_connections total_connections rejected_connections connection_structures cmd_get cmd_set cmd_flush "
        "cmd_touch cmd_meta auth_cmds auth_errors get_hits get_misses get_expired get_flushed delete_misses "
        "delete_hits incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval touch_hits "
        "touch_misses store_too_large store_no_memory bytes_read bytes_written limit_maxbytes accepting_conns "
        "listen_disabled_num time_in_listen_disabled_us rejected_conns foreign_protocol_conns threads conn_yields "
        "evictions curr_items total_items bytes reclaimed engine_maxbytes").split()


@dataclass
class Counters:
    """What the server has counted since its start or the last reset."""

    started: float = field(default_factory=time.time)
    counts: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    open: int = 0
    most: int = 1
    verbosity: int = 0
    is_detailed: bool = False
    prefixes: dict[bytes, tuple[int, int, int, int]] = field(default_factory=dict)

    def add(self, name: str, amount: int = 1) -> None:
        """Count."""
        self.counts[name] += amount

    def reset(self) -> None:
        """Set the counters to 0."""
        self.counts.clear()
        self.prefixes.clear()

    def detail(self, key: bytes, *slots: int) -> None:
        """Count a key by its prefix: gets, hits, sets and deletes."""
        if self.is_detailed and b":" in key:
            prefix = key.split(b":", 1)[0]
            gets, hits, sets, deletes = self.prefixes.get(prefix, (0, 0, 0, 0))
            self.prefixes[prefix] = (gets + (0 in slots), hits + (1 in slots), sets + (2 in slots),
                                     deletes + (3 in slots))

    def dump(self) -> bytes:
        """Give the counts by prefix."""
        return b"".join(b"PREFIX %s get %d hit %d set %d del %d\r\n" % (prefix, *counts)
                        for prefix, counts in self.prefixes.items()) + b"END\r\n"

    def report(self, items: int) -> bytes:
        """Give the rows of `stats`."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        fixed: dict[str, object] = {
            "pid": os.getpid(), "uptime": int(time.time() - self.started), "time": int(time.time()),
            "version": VERSION, "libevent": "asyncio", "pointer_size": 64, "rusage_user": f"{usage.ru_utime:.6f}",
            "rusage_system": f"{usage.ru_stime:.6f}", "daemon_connections": 1, "max_connections": 1024,
            "curr_connections": self.open + 1, "connection_structures": self.most, "accepting_conns": 1,
            "threads": 1, "curr_items": items}
        lines = [f"STAT {name} {fixed.get(name, self.counts.get(name, 0))}\r\n" for name in ROWS]
        return "".join(lines).encode() + b"END\r\n"
