"""Counters of `stats`, also by key prefix, and the rows of its fixed sub-commands, in the plugin's order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Final

from kvref.protocol import commands as c
from kvref.protocol.command_table import ROWS
from kvref.protocol.grammar import BAD_FORMAT
from kvref.protocol.numbers import unsigned
from kvref.protocol.replies import ClientError, Line, Reply, ServerError, StatRows

_MASK: Final = 0xFFFFFFFF
_BLOCK: Final = 12  # bytes: three words
# (changed, taken off, bits to rotate by): the rounds of mix() and of final() in lookup3.c.
_MIX: Final = ((0, 2, 4), (1, 0, 6), (2, 1, 8), (0, 2, 16), (1, 0, 19), (2, 1, 4))
_FINAL: Final = ((2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24))


def jenkins(text: bytes) -> int:
    """Return the 32-bit hash of a text, with initial value 0 (hash.c; public domain lookup3.c, hashlittle)."""
    words = [(0xDEADBEEF + len(text)) & _MASK] * 3
    if not text:
        return words[2]
    last = (len(text) - 1) // _BLOCK * _BLOCK
    for start in range(0, last, _BLOCK):
        _add(words, text[start : start + _BLOCK])
        for changed, other, bits in _MIX:
            words[changed] = (words[changed] - words[other] ^ _rotated(words[other], bits)) & _MASK
            words[other] = (words[other] + words[3 - changed - other]) & _MASK
    _add(words, text[last:].ljust(_BLOCK, b"\0"))
    for changed, other, bits in _FINAL:
        words[changed] = ((words[changed] ^ words[other]) - _rotated(words[other], bits)) & _MASK
    return words[2]


def _add(words: list[int], block: bytes) -> None:
    for place in range(3):
        words[place] = (words[place] + int.from_bytes(block[4 * place : 4 * place + 4], "little")) & _MASK


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _MASK


COLON: Final = b":"
BUCKETS: Final = 256  # of memcached's table of prefixes
MAX_PREFIXES: Final = 10_000  # prefixes kept: a client must not be able to fill the memory with them


@dataclass(slots=True)
class Uses:
    """How many gets, hits, sets and deletes the keys of one prefix had."""

    get: int = 0
    hit: int = 0
    set: int = 0
    delete: int = 0


@dataclass(slots=True)
class Prefixes:
    """Counters by prefix since `stats detail on`; a key without a colon is not counted (count-009).

    They are listed in the order of memcached's table, by Bob Jenkins' lookup3.

    by_beginning: a prefix counts as the newest one that begins with it and has the same place in that table
    (count-013): stats_prefix_find (stats.c) compares no lengths.
    """

    counting: bool = False
    by_beginning: bool = False
    _uses: dict[bytes, Uses] = field(default_factory=dict)

    def got(self, word: bytes, *, hit: bool) -> None:
        """Count a word of a get."""
        uses = self._of(word)
        if uses is not None:
            uses.get += 1
            uses.hit += hit

    def stored(self, word: bytes) -> None:
        """Count a storage command, whatever its answer."""
        uses = self._of(word)
        if uses is not None:
            uses.set += 1

    def deleted(self, word: bytes) -> None:
        """Count a delete, whatever its answer."""
        uses = self._of(word)
        if uses is not None:
            uses.delete += 1

    def lines(self) -> list[bytes]:
        """Return the lines of `stats detail dump` by hash, among equal ones the newest first (stats.c, count-010)."""
        newest_first = reversed(self.all().items())
        return [
            b"PREFIX %b get %d hit %d set %d del %d" % (prefix, uses.get, uses.hit, uses.set, uses.delete)
            for prefix, uses in sorted(newest_first, key=lambda entry: jenkins(entry[0]) % BUCKETS)
        ]

    def all(self) -> dict[bytes, Uses]:
        """Return the counters of every prefix, the oldest first."""
        return self._uses

    def clear(self) -> None:
        """Forget all prefixes; counting goes on."""
        self._uses.clear()

    def counted_as(self, word: bytes) -> bytes | None:
        """Return the prefix under which a word is counted; None if it has no colon."""
        prefix = prefix_of(word)
        if prefix is None or not self.by_beginning:
            return prefix
        place = jenkins(prefix) % BUCKETS
        alike = (each for each in reversed(self._uses) if each.startswith(prefix) and jenkins(each) % BUCKETS == place)
        return next(alike, prefix)

    def _of(self, word: bytes) -> Uses | None:
        prefix = self.counted_as(word) if self.counting else None
        if prefix is None or (prefix not in self._uses and len(self._uses) >= MAX_PREFIXES):
            return None
        return self._uses.setdefault(prefix, Uses())


def prefix_of(word: bytes) -> bytes | None:
    """Return the part of a key before its first colon; None if it has no colon."""
    prefix, colon, _ = word.split(b"\0")[0].partition(COLON)  # stats_prefix_find reads up to NUL (more:bin-216)
    return prefix if colon else None


@dataclass(slots=True)
class Counters:
    """Counters since start or `stats reset`; each is named as `stats` names it."""

    cmd_get: int = 0
    cmd_set: int = 0
    cmd_flush: int = 0
    cmd_touch: int = 0
    get_hits: int = 0
    get_misses: int = 0
    delete_misses: int = 0
    delete_hits: int = 0
    incr_misses: int = 0
    incr_hits: int = 0
    decr_misses: int = 0
    decr_hits: int = 0
    cas_misses: int = 0
    cas_hits: int = 0
    cas_badval: int = 0
    touch_hits: int = 0
    touch_misses: int = 0
    get_expired: int = 0
    store_too_large: int = 0
    total_items: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    total_connections: int = 0
    auth_cmds: int = 0
    auth_errors: int = 0
    rejected_conns: int = 0
    idle_kicks: int = 0
    foreign_protocol_conns: int = 0
    crawler_reclaimed: int = 0
    prefixes: Prefixes = field(default_factory=Prefixes)

    def got(self, word: bytes, *, hits: int, misses: int) -> None:
        """Count what a word of a get found."""
        self.prefixes.got(word, hit=hits > 0)
        self.looked_up(hits, misses)

    def found(self) -> None:
        """Count a key that a get looked up and found; no prefix of it."""
        self.cmd_get += 1
        self.get_hits += 1

    def looked_up(self, hits: int, misses: int) -> None:
        """Count keys that gets looked up; no prefixes of them."""
        self.cmd_get += hits + misses
        self.get_hits += hits
        self.get_misses += misses

    def add(self, names: Iterable[str], times: int = 1) -> None:
        """Add a number to each of some counters."""
        for name in names:
            setattr(self, name, getattr(self, name) + times)

    def item_stored(self) -> None:
        """Count an item that a storage command has stored."""
        self.add(STORED_ITEM)

    def touched(self, word: bytes, *, hit: bool) -> None:
        """Count what a word of a gat found."""
        self.prefixes.got(word, hit=hit)
        self.cmd_touch += 1
        self.touch_hits += hit
        self.touch_misses += not hit

    def count(self, command: c.Command, reply: Reply, *, missing_counted: bool) -> None:
        """Count a command by its answer (count-001, count-002); get counts its words itself.

        Args:
            command: the client's command.
            reply: the reply to it.
            missing_counted: incr and decr of a missing key count as hits.
        """
        names = counted(command, reply, missing_counted=missing_counted)
        if names:
            self.add(names)
        if isinstance(command, c.Store):
            self.prefixes.stored(command.word)
        elif isinstance(command, c.Delete):
            self.prefixes.deleted(command.word)

    def totals(self) -> dict[str, int]:
        """Return the counters by name."""
        return {name: getattr(self, name) for name in COUNTED}

    def reset(self) -> None:
        """Set every counter to 0."""
        for name in COUNTED:
            setattr(self, name, 0)
        self.prefixes.clear()


def counted(command: c.Command, reply: Reply, *, missing_counted: bool) -> Iterable[str]:
    """Return the counters, by name, to which a command adds one; the arguments are those of `Counters.count`."""
    counters = ROWS[type(command)].counters
    return () if counters is None else counters(command, reply, missing_counted)


STORED_ITEM: Final = ("total_items",)  # what an item adds to that a storage command has stored
COUNTED: Final = tuple(counter.name for counter in fields(Counters) if counter.name != "prefixes")


def counters_of(name: str) -> tuple[str, ...]:
    """Return the counters that add up to the commands of a name of `Row.metrics`.

    Raises:
        KeyError: there are none.
    """
    results = tuple(f"{name}_{result}" for result in ("hits", "misses", "badval") if f"{name}_{result}" in COUNTED)
    if results:
        return results
    if f"cmd_{name}" not in COUNTED:
        raise KeyError(f"{name!r}: Counters has neither {name}_hits nor cmd_{name}")
    return (f"cmd_{name}",)


# The plugin's rows in the plugin's order (verb-054); a name that is neither a counter nor the server's own is 0.
GENERAL: Final = (
    "pid uptime time version libevent pointer_size rusage_user rusage_system daemon_connections curr_connections "
    "total_connections connection_structures cmd_get cmd_set cmd_flush auth_cmds auth_errors get_hits get_misses "
    "delete_misses delete_hits incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval bytes_read "
    "bytes_written limit_maxbytes accepting_conns listen_disabled_num rejected_conns threads conn_yields"
).split()
# Behind which of them stand others that memcached 1.6 has there, and that mean something here; the last is kvref's own.
NEWER: Final = {
    "daemon_connections": ["max_connections"],
    "total_connections": ["rejected_connections"],
    "cmd_flush": ["cmd_touch"],
    "get_misses": ["get_expired", "get_flushed"],
    "cas_badval": ["touch_hits", "touch_misses", "store_too_large"],
    "rejected_conns": ["foreign_protocol_conns"],
}
# Where memcached has it, which shows it too only where idle_timeout is set.
IDLE: Final = {"connection_structures": ["idle_kicks"]}
# Shown if expired_rows_purge_interval is not 0.
PURGE: Final = {"conn_yields": ["crawler_reclaimed"]}
# Shown with row_cache_binlog=1.
ROW_CACHE: Final = {
    "conn_yields": [
        "row_cache_hits", "row_cache_misses", "row_cache_behind", "row_cache_evictions", "row_cache_lag_us",
        "row_cache_age_us",
    ]
}  # fmt: skip
# Shown with reads=replica and reads=session.
REPLICA: Final = {"conn_yields": ["replica_gets", "replica_behind", "replica_unavailable"]}
BAD_LINE: Final = b"CLIENT_ERROR bad command line"
SLABS: Final = 200
CLASSES: Final = 64  # MAX_NUMBER_OF_SLAB_CLASSES of memcached 1.6
ENGINE: Final = "evictions curr_items total_items bytes reclaimed engine_maxbytes".split()
EVICTS: Final = "settings evictions"  # the row of `stats settings`; that of `stats` is a number
SETTINGS: Final = (
    "maxbytes maxconns tcpport udpport inter verbosity oldest evictions domain_socket umask growth_factor chunk_size "
    "num_threads num_threads_per_udp stat_key_prefix detail_enabled allow_detailed reqs_per_event reqs_per_tap_event "
    "cas_enabled tcp_backlog binding_protocol auth_enabled_sasl auth_sasl_engine auth_required_sasl item_size_max "
    "topkeys logger idle_timeout ssl_enabled"
).split()


def general(own: dict[str, str], counters: Counters, *, newer: bool) -> StatRows:
    """Return the rows of `stats aggregate`.

    Args:
        own: the server's own values by row name.
        counters: of this server.
        newer: with those that memcached 1.6 has and the plugin never had.
    """
    return _rows(_general(own, newer=newer), counters, own)


def general_and_engine(own: dict[str, str], counters: Counters, *, newer: bool, engine_first: bool) -> StatRows:
    """Return the rows of `stats`.

    Args:
        own, counters, newer: see `general`.
        engine_first: the order of the binary protocol (stat-001).
    """
    names, engine = _general(own, newer=newer), ENGINE
    if newer and "curr_items" not in own:
        engine = [name for name in ENGINE if name != "curr_items"]  # 0 would be taken for an empty table
    return _rows(engine + names if engine_first else names + engine, counters, own)


def settings(own: dict[str, str], counters: Counters) -> StatRows:
    """Return the rows of `stats settings`; arguments as of `general`."""
    if EVICTS in own:
        own["evictions"] = own[EVICTS]
    return _rows([name for name in SETTINGS if name in own], counters, own)


def _general(own: dict[str, str], *, newer: bool) -> list[str]:
    behind = NEWER if newer else {}
    if int(own.get("idle_timeout", 0)):
        behind = behind | IDLE
    if int(own.get("expired_rows_purge_interval", 0)):
        behind = behind | PURGE
    for first, rows in (("row_cache_hits", ROW_CACHE), ("replica_gets", REPLICA)):
        if newer and first in own:
            behind = behind | {"conn_yields": behind.get("conn_yields", []) + rows["conn_yields"]}
    return [each for name in GENERAL for each in (name, *behind.get(name, ()))]


def cachedump(limits: list[bytes], *, empty: bool) -> Reply:
    """Answer `stats cachedump SLAB LIMIT`: nothing is cached, so that only its numbers are read (count-012).

    Args:
        limits: the words behind `cachedump`.
        empty: it shows classes without items, as memcached 1.6 does, not a lack of memory.
    """
    if len(limits) < 2:
        return Line(BAD_LINE)
    slab, limit = unsigned(limits[0]), unsigned(limits[1])
    if slab is None or limit is None:
        return Line(BAD_FORMAT)
    if slab % (1 << 32) >= (CLASSES if empty else SLABS):
        return ClientError("Illegal slab id")
    return StatRows([]) if empty else ServerError("out of memory writing stats")


def _rows(names: list[str], counters: Counters, process: dict[str, str]) -> StatRows:
    totals = counters.totals()
    return StatRows([(name, process.get(name) or str(totals.get(name, 0))) for name in names])
