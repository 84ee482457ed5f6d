"""The commands of the text protocol, as functions from the words of a line to a reply."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote_from_bytes

from counters import VERSION
from mappings import Mapping
from refusal import Refusal
from store import Item, Write
from words import KEY_MAX, flags_of, length_of, low32, number, range_of, signed, switch_of, unsigned

if TYPE_CHECKING:
    from meta import Flags
    from server import Server

ITEM_MAX = 1 << 20
STORAGE = (b"set", b"add", b"replace", b"append", b"prepend", b"cas")
FIXED = {b"version": b"VERSION " + VERSION.encode(), b"refresh_certs": b"Error TLS not enabled",
         b"shutdown": b"ERROR: shutdown not enabled"}
BAD_FORMAT = b"CLIENT_ERROR bad command line format"
TOO_LARGE = "SERVER_ERROR object too large for cache"
USAGE_DELETE = b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]"
# How many words a line has, and how many if the last one can be `noreply`.
LENGTHS = {**dict.fromkeys((b"incr", b"decr", b"touch"), range(3, 5)), b"delete": range(2, 5), b"bind": range(2, 3),
           **dict.fromkeys((b"verbosity", b"cache_memlimit"), range(2, 4)), b"flush_all": range(1, 4),
           **dict.fromkeys((b"get", b"gets", b"bget", b"gat", b"gats", b"mg", b"md", b"ma"), range(2, 1 << 30))}
QUIET = {**dict.fromkeys(STORAGE, range(5, 7)), b"cas": range(6, 8), b"touch": range(4, 5),
         **dict.fromkeys((b"incr", b"decr", b"delete"), range(3, 5)),
         **dict.fromkeys((b"flush_all", b"verbosity", b"cache_memlimit"), range(2, 4))}
KEYED = (b"delete", b"incr", b"decr", b"touch", b"bind", b"mg", b"md", b"ma")


@dataclass
class Pending:
    """A storage command whose data block follows, or is skipped."""

    verb: str = ""
    key: bytes = b""
    flags: int = 0
    exptime: int = 0
    length: int = 0
    cas: int | None = None
    is_quiet: bool = False
    is_refused: bool = False
    meta: "Flags | None" = None


def is_quiet(words: list[bytes]) -> bool:
    """Tell whether the last word suppresses the reply."""
    return len(words) in QUIET.get(words[0], ()) and words[-1] == b"noreply"


class Commands:
    """The commands of one connection, with its binding."""

    def __init__(self, server: "Server") -> None:
        """Begin with the default mapping."""
        self.server = server
        self.store_of = server.store
        self.registry = server.registry
        self.counters = server.counters
        self.binding: str | None = None
        self.pending: Pending | None = None
        self.handlers: dict[bytes, Callable[[list[bytes]], bytes]] = {
            b"get": self.get, b"gets": self.get, b"bget": self.get, b"delete": self.delete, b"incr": self.count,
            b"decr": self.count, b"touch": self.touch, b"gat": self.gat, b"gats": self.gat, b"bind": self.bind,
            b"flush_all": self.flush_all, b"verbosity": self.verbosity,
            b"stats": self.stats, b"lru_crawler": self.crawler, b"cache_memlimit": self.cache_memlimit,
            **dict.fromkeys(FIXED, self.fixed), **dict.fromkeys(STORAGE, self.storage)}

    def knows(self, name: bytes) -> bool:
        """Tell whether a word is a command."""
        return name in self.handlers

    def run(self, words: list[bytes]) -> bytes:
        """Run a command, unless its line has too few or too many words or a long key."""
        if words[0] in LENGTHS and len(words) not in LENGTHS[words[0]]:
            return b"ERROR"
        if words[0] in KEYED and len(words[1]) > KEY_MAX:
            return BAD_FORMAT
        return self.handlers[words[0]](words)

    def taken(self) -> Pending | None:
        """Hand over the data block that the last line has announced."""
        pending, self.pending = self.pending, None
        return pending

    def target(self, word: bytes) -> tuple[Mapping | None, bytes | None]:
        """Find mapping and key of a word, and switch to the mapping."""
        switch = switch_of(word, self.registry.delimiter)
        if switch is None:
            return self.registry.mapping(self.binding), word
        name = self.registry.find(switch.name) if switch.name else None
        if name is None:
            return None, None
        self.binding = name
        return self.registry.mapping(name), switch.key

    def key_target(self, word: bytes) -> tuple[Mapping | None, bytes | None]:
        """Find mapping and key of a word; one that ends with the delimiter switches nothing (KV-MAP-049)."""
        bound = self.binding
        mapping, key = self.target(word)
        if mapping is not None and key == b"":
            self.binding = bound
            raise Refusal(f"CLIENT_ERROR no key behind the delimiter in {word.decode('utf-8', 'replace')}")
        return mapping, key

    def storage(self, words: list[bytes]) -> bytes:
        """Read the line of a storage command."""
        is_cas = words[0] == b"cas"
        least = 6 if is_cas else 5
        if len(words) < 5:
            return b"ERROR"
        length = length_of(words[4])
        if length is None:
            return BAD_FORMAT if least <= len(words) <= least + 1 else b"ERROR"
        pending = Pending(words[0].decode(), words[1], length=length, is_quiet=is_quiet(words), is_refused=True)
        self.pending = pending
        if not least <= len(words) <= least + 1:
            return b"ERROR"
        flags, exptime, cas = flags_of(words[2]), signed(words[3]), unsigned(words[5]) if is_cas else None
        if len(words[1]) > KEY_MAX or flags is None or exptime is None or (is_cas and cas is None):
            return BAD_FORMAT
        pending.flags, pending.exptime, pending.cas = flags, exptime, cas
        return self.admit(pending)

    def admit(self, pending: Pending) -> bytes:
        """Wait for the data block, or refuse one that is too large."""
        if pending.length > ITEM_MAX:
            if pending.verb == "set":
                mapping, key = self.target(pending.key)
                if mapping is not None and key:
                    self.store_of.discard(mapping, key)
            raise Refusal(TOO_LARGE, too_large=True)
        pending.is_refused = False
        return b""

    def store(self, pending: Pending, data: bytes) -> bytes:
        """Process a storage command with its data block."""
        verb = pending.verb
        mapping, key = self.key_target(pending.key)
        if mapping is None:
            result = "NOT_FOUND"
        elif key is None:
            result = "NOT_STORED"
        else:
            write = Write(verb, key, data, pending.flags, pending.exptime, pending.cas)
            result = self.store_of.store(mapping, write, self.registry.separator)
        if verb == "cas":
            self.counters.add({"STORED": "cas_hits", "EXISTS": "cas_badval"}.get(result, "cas_misses"))
        else:
            self.counters.add("cmd_set")
        if result == "STORED":
            self.counters.add("total_items")
        self.counters.detail(pending.key, 2)
        return self.reply_to_store(pending, result)

    def reply_to_store(self, pending: Pending, result: str) -> bytes:
        """Write the reply to a storage command."""
        return result.encode()

    def get(self, words: list[bytes]) -> bytes:
        """Return items, whole ranges and the tables of mappings."""
        if any(len(word) > KEY_MAX for word in words):
            return BAD_FORMAT
        with_cas = words[0] == b"gets"
        output: list[bytes] = []
        for word in words[1:]:
            mapping, key = self.target(word)
            if mapping is None:
                self.tally_get(word, False)
                continue
            if not key:
                container = mapping.container
                where = f"{container.schema}/{container.table}".encode()
                output.append(self.shown(word, 0, where, 0 if with_cas else None))
                self.tally_get(word, True)
                continue
            bounds = range_of(key)
            if bounds is not None:
                items = self.store_of.range(mapping.table, bounds)
                self.tally_get(word, bool(items))
                for item in items:
                    shown = mapping.table.key.decode(item.key)
                    if mapping.table.key.type == "CHAR":
                        shown = shown.rstrip(b" ")
                    output.append(self.shown_item(shown, mapping, item, with_cas))
                continue
            found = self.store_of.live(mapping.table, key)
            self.tally_get(word, found is not None)
            if found is not None:
                output.append(self.shown_item(word, mapping, found, with_cas))
        return b"".join(output) + b"END\r\n"

    def tally_get(self, word: bytes, is_hit: bool) -> None:
        """Count a key of a get."""
        self.counters.add("cmd_get")
        self.counters.add("get_hits" if is_hit else "get_misses")
        self.counters.detail(word, *((0, 1) if is_hit else (0,)))

    def shown_item(self, key: bytes, mapping: Mapping, item: Item, with_cas: bool) -> bytes:
        """Write an item as a get returns it."""
        value = self.store_of.value(mapping.table, item, self.registry.separator)
        return self.shown(key, item.flags, value, item.cas if with_cas else None)

    def shown(self, key: bytes, flags: int, value: bytes, cas: int | None) -> bytes:
        """Write one VALUE and its data block."""
        end = b"" if cas is None else b" %d" % cas
        return b"VALUE %s %d %d%s\r\n%s\r\n" % (key, flags, len(value), end, value)

    def delete(self, words: list[bytes]) -> bytes:
        """Delete an item."""
        if words[2:] not in ([], [b"0"], [b"noreply"], [b"0", b"noreply"]):
            return USAGE_DELETE
        mapping, key = self.key_target(words[1])
        return self.remove(words[1], mapping, key).encode()

    def remove(self, word: bytes, mapping: Mapping | None, key: bytes | None, cas: int | None = None) -> str:
        """Delete the item of a word, and count it."""
        result = "NOT_FOUND" if mapping is None or key is None else self.store_of.delete(mapping.table, key, cas)
        self.counters.add("delete_misses" if result == "NOT_FOUND" else "delete_hits")
        self.counters.detail(word, 3)
        return result

    def count(self, words: list[bytes]) -> bytes:
        """Add to a number, or subtract from it."""
        delta = unsigned(words[2])
        if delta is None:
            return b"CLIENT_ERROR invalid numeric delta argument"
        mapping, key = self.key_target(words[1])
        verb = words[0].decode()
        result = None
        if mapping is not None and key is not None:
            result = self.store_of.count(mapping.table, key, delta, verb == "decr")
        self.counters.add(f"{verb}_misses" if result is None else f"{verb}_hits")
        return b"NOT_FOUND" if result is None else b"%d" % result

    def touch(self, words: list[bytes]) -> bytes:
        """Give an item another expiry."""
        exptime = signed(words[2])
        if exptime is None:
            return b"CLIENT_ERROR invalid exptime argument"
        mapping, key = self.key_target(words[1])
        item = self.store_of.touch(mapping, key, exptime) if mapping is not None and key is not None else None
        self.tally_touch(item is not None)
        return b"NOT_FOUND" if item is None else b"TOUCHED"

    def tally_touch(self, is_hit: bool) -> None:
        """Count a touched key."""
        self.counters.add("cmd_touch")
        self.counters.add("touch_hits" if is_hit else "touch_misses")

    def gat(self, words: list[bytes]) -> bytes:
        """Return items, and give them another expiry."""
        exptime = signed(words[1])
        if exptime is None:
            return b"CLIENT_ERROR invalid exptime argument"
        if any(len(word) > KEY_MAX for word in words):
            return BAD_FORMAT
        output: list[bytes] = []
        for word in words[2:]:
            mapping, key = self.target(word)
            if key is not None and range_of(key) is not None:
                return b"CLIENT_ERROR gat takes no range: get it, and touch each key"
            item = self.store_of.touch(mapping, key, exptime) if mapping is not None and key else None
            self.tally_touch(item is not None)
            if mapping is not None and item is not None:
                output.append(self.shown_item(word, mapping, item, words[0] == b"gats"))
        return b"".join(output) + b"END\r\n"

    def bind(self, words: list[bytes]) -> bytes:
        """Switch to a mapping."""
        name = self.registry.find(words[1])
        if name is None:
            return b"NOT_FOUND"
        self.binding = name
        return b"SUCCEED"

    def flush_all(self, words: list[bytes]) -> bytes:
        """Delete the rows of the table in use."""
        delay = signed(words[1]) if words[1:] not in ([], [b"noreply"]) else 0
        if delay is None:
            return b"CLIENT_ERROR invalid exptime argument"
        if delay > 0:
            return b"CLIENT_ERROR delayed flush_all is not supported: send flush_all or flush_all 0"
        self.store_of.flush(self.registry.mapping(self.binding).table)
        self.counters.add("cmd_flush")
        return b"OK"

    def fixed(self, words: list[bytes]) -> bytes:
        """Give a reply that is always the same."""
        return FIXED[words[0]]

    def verbosity(self, words: list[bytes]) -> bytes:
        """Set the level of the log."""
        level = unsigned(words[1])
        if level is None:
            return BAD_FORMAT
        self.counters.verbosity = min(level, 2)
        return b"OK"

    def cache_memlimit(self, words: list[bytes]) -> bytes:
        """Accept a limit of the memory that the server does not use."""
        value = number(words[1])
        if value is None or not 0 <= value < 1 << 64:
            return b"ERROR"
        if value & 0xFFFFFFFF < 8:
            return b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"
        return b"OK"

    def stats(self, words: list[bytes]) -> bytes:
        """Tell the counters and settings."""
        if len(words) == 1:
            return self.counters.report(self.store_of.size(self.registry.mapping(self.binding).table))
        topic = words[1]
        if topic == b"reset":
            self.counters.reset()
            return b"RESET"
        if topic == b"detail":
            return self.stats_detail(words[2:])
        if topic == b"cachedump":
            return self.stats_cachedump(words[2:])
        if topic == b"vbucket":
            return b"STAT vb_0 active\r\nEND\r\n"
        if topic == b"scrub":
            return b"STAT scrubber:status stopped\r\nEND\r\n"
        if topic in (b"sizes", b"items", b"slabs"):
            return b"END"
        if topic == b"settings":
            rows = {"maxbytes": 0, "maxconns": 1024, "tcpport": self.server.port, "verbosity": self.counters.verbosity,
                    "evictions": "off", "domain_socket": "NULL", "item_size_max": ITEM_MAX, "ssl_enabled": "no",
                    "inter": "127.0.0.1", "auth_enabled_ascii": "no", "shutdown_command": "no",
                    "detail_enabled": "yes" if self.counters.is_detailed else "no", "maxconns_fast": "no",
                    "lru_crawler": "yes" if self.server.is_crawling else "no", "flush_enabled": "yes",
                    "dump_enabled": "yes", "track_sizes": "no"}
            return "".join(f"STAT {name} {value}\r\n" for name, value in rows.items()).encode() + b"END\r\n"
        return self.stats_conns() if topic == b"conns" else b"ERROR"

    def stats_detail(self, rest: list[bytes]) -> bytes:
        """Switch the counts by prefix, or show them."""
        if rest[:1] in ([b"on"], [b"off"]):
            self.counters.is_detailed = rest[0] == b"on"
            return b"OK"
        if rest[:1] == [b"dump"]:
            return self.counters.dump()
        return b"CLIENT_ERROR usage: stats detail on|off|dump"

    def stats_cachedump(self, rest: list[bytes]) -> bytes:
        """List the items of a slab class, which has none."""
        if len(rest) < 2:
            return b"CLIENT_ERROR bad command line"
        slab, limit = unsigned(rest[0]), unsigned(rest[1])
        if slab is None or limit is None:
            return BAD_FORMAT
        return b"END" if slab < 64 else b"CLIENT_ERROR Illegal slab id"

    def stats_conns(self) -> bytes:
        """List the connections."""
        listening = f"tcp:127.0.0.1:{self.server.port}"
        rows = {self.server.fd: [("addr", listening), ("state", "conn_listening"),
                                 ("secs_since_last_cmd", int(time.time() - self.counters.started))]}
        for session in self.server.sessions:
            host, port = session.writer.get_extra_info("peername")[:2]
            rows[session.fd] = [("addr", f"tcp:{host}:{port}"), ("listen_addr", listening), ("state", session.state),
                                ("secs_since_last_cmd", int(time.monotonic() - session.last))]
        lines = [f"STAT {fd}:{name} {value}\r\n" for fd in sorted(rows) for name, value in rows[fd]]
        return "".join(lines).encode() + b"END\r\n"

    def crawler(self, words: list[bytes]) -> bytes:
        """List all keys, or accept a setting of the crawler."""
        topic = words[1] if len(words) > 1 else b""
        if topic in (b"enable", b"disable") and len(words) == 2:
            if topic == b"enable" and self.server.is_crawling:
                return b"ERROR failed to start lru crawler thread"
            self.server.is_crawling = topic == b"enable"
            return b"OK"
        if len(words) != 3 or topic not in (b"metadump", b"crawl", b"sleep", b"tocrawl"):
            return b"ERROR"
        if topic in (b"sleep", b"tocrawl"):
            value = unsigned(words[2])
            if value is None:
                return BAD_FORMAT
            if topic == b"sleep" and not 0 <= low32(value) <= 1000000:
                return b"CLIENT_ERROR sleep must be one second or less"
            return b"OK"
        if not self.server.is_crawling:
            return b"CLIENT_ERROR lru crawler disabled"
        if words[2] not in (b"all", b"hash"):
            classes = [part for part in words[2].split(b",") if part]
            if not classes or not all(part.isdigit() and len(part) < 9 and 1 <= int(part) <= 63 for part in classes):
                return b"BADCLASS invalid class id"
            return b"OK" if topic == b"crawl" else b"END"
        return b"OK" if topic == b"crawl" else self.metadump()

    def metadump(self) -> bytes:
        """List the items of the mapping in use."""
        mapping = self.registry.mapping(self.binding)
        lines: list[str] = []
        for item in self.store_of.all(mapping.table):
            key = mapping.table.key.decode(item.key)
            if not 0 < len(key) <= KEY_MAX or any(byte in b"\0\n " for byte in key):
                continue
            size = len(key) + len(self.store_of.value(mapping.table, item, self.registry.separator))
            lines.append(f"key={quote_from_bytes(key, safe='')} exp={item.expiry if item.expiry > 0 else -1} "
                         f"la={int(time.time())} cas={item.cas} fetch=no cls=0 size={size}\n")
        return "".join(lines).encode() + b"END\r\n"
