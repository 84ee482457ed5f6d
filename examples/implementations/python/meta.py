"""The meta commands, without keys in base64 and without marks: the flags b, h, l, u, I and R, and N of `mg`."""

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commands import BAD_FORMAT, Commands, Pending
from refusal import Refusal
from store import Item, Write, expiry_of
from words import KEY_MAX, flags_of, length_of, range_of, signed, unsigned

if TYPE_CHECKING:
    from server import Server

NUMBERS = {b"F": flags_of, b"T": signed, b"N": signed, b"C": unsigned, b"J": unsigned, b"D": unsigned}
LETTERS = b"PLkstcfvqOFTCJDM"
STORING = {b"S": "set", b"E": "add", b"A": "append", b"P": "prepend", b"R": "replace"}
COUNTING = {b"I": "incr", b"+": "incr", b"D": "decr", b"-": "decr"}
META = {"STORED": b"HD", "DELETED": b"HD", "NOT_STORED": b"NS", "EXISTS": b"EX", "NOT_FOUND": b"NF"}
ONE_FAULT = "CLIENT_ERROR invalid or duplicate flag"


@dataclass
class Flags:
    """The flags of a command in their order, with their tokens, and the numbers of those that have one."""

    tokens: dict[bytes, bytes] = field(default_factory=dict)
    numbers: dict[bytes, int] = field(default_factory=dict)

    def read(self, words: list[bytes], letters: bytes, modes: dict[bytes, str], fault: str = "") -> "Flags":
        """Read words, or refuse them: most faults with one reply, if the command has one."""
        if len(words) > (16 if modes is STORING else 17):
            raise Refusal(f"CLIENT_ERROR options flags {'' if modes is STORING else 'are '}too long")
        for letter, token in ((word[:1], word[1:]) for word in words):
            if letter in self.tokens:
                raise Refusal(fault or "CLIENT_ERROR duplicate flag")
            if letter not in letters:
                raise Refusal(fault or "CLIENT_ERROR invalid flag")
            self.tokens[letter] = token
            if letter in NUMBERS:
                number = NUMBERS[letter](token)
                if number is None:
                    plain = BAD_FORMAT.decode() if letter == b"F" else "CLIENT_ERROR bad token in command line format"
                    raise Refusal(fault or plain)
                self.numbers[letter] = number
            if letter == b"M" and modes and len(token) != 1:
                raise Refusal(fault or "CLIENT_ERROR incorrect length for M token")
        if modes and self.tokens.get(b"M", next(iter(modes))) not in modes:
            raise Refusal(f"CLIENT_ERROR invalid mode for {'ma' if modes is COUNTING else 'ms'} M token")
        if len(self.tokens.get(b"O", b"")) > 31:
            raise Refusal("CLIENT_ERROR opaque token too long")
        return self

    def shown(self, word: bytes, item: dict[bytes, int] | None = None) -> bytes:
        """Write the flags of a reply, in the order of the request: of an item also its numbers."""
        known = {b"k": word, b"O": self.tokens.get(b"O", b"")}
        known |= {letter: b"%d" % value for letter, value in (item or {}).items()}
        return b"".join(b" " + letter + known[letter] for letter in self.tokens if letter in known)

    def left(self, before: int) -> int:
        """Give the seconds until an item expires, new ones if the flag T precedes t; -1 is never."""
        letters = list(self.tokens)
        is_new = b"T" in letters and (b"t" not in letters or letters.index(b"T") < letters.index(b"t"))
        expiry = expiry_of(self.numbers[b"T"]) if is_new else before
        return max(expiry - int(time.time()), 0) if expiry > 0 else -1


class MetaCommands(Commands):
    """The commands of one connection, with meta commands."""

    def __init__(self, server: "Server") -> None:
        """Begin with the default mapping."""
        super().__init__(server)
        self.handlers |= {b"mg": self.meta_get, b"ms": self.meta_set, b"md": self.meta_delete, b"ma": self.meta_count,
                          b"me": self.meta_debug, b"mn": lambda words: b"MN"}

    def meta_set(self, words: list[bytes]) -> bytes:
        """Read the line of `ms`."""
        length = length_of(words[2]) if len(words) > 2 else None
        if length is None:
            return BAD_FORMAT if len(words) > 1 else b"ERROR"
        flags = Flags()
        pending = self.pending = Pending("set", words[1], length=length, is_refused=True, meta=flags)
        if len(words[1]) > KEY_MAX:
            return BAD_FORMAT
        flags.read(words[3:], LETTERS, STORING)
        pending.verb = STORING[flags.tokens.get(b"M", b"S")]
        pending.flags, pending.exptime = flags.numbers.get(b"F", 0), flags.numbers.get(b"T", 0)
        pending.cas = flags.numbers.get(b"C") if pending.verb != "add" else None
        if pending.cas is not None and pending.verb in ("set", "replace"):
            pending.verb = "cas"
        return self.admit(pending)

    def reply_to_store(self, pending: Pending, result: str) -> bytes:
        """Write the reply to a storage command."""
        if pending.meta is None:
            return super().reply_to_store(pending, result)
        if result == "STORED" and b"q" in pending.meta.tokens:
            return b""
        mapping, key = self.target(pending.key)
        item = self.store_of.row(mapping.table, key) if result == "STORED" and mapping is not None and key else None
        return META[result] + pending.meta.shown(pending.key, {b"c": item.cas if item else 0})

    def meta_get(self, words: list[bytes]) -> bytes:
        """Return what the flags of `mg` ask of an item."""
        flags = Flags().read(words[2:], LETTERS, {})
        mapping, key = self.target(words[1])
        if key is not None and range_of(key) is not None:
            return b"CLIENT_ERROR mg takes no range: get it"
        value = f"{mapping.container.schema}/{mapping.container.table}".encode() if mapping is not None else b""
        item = Item(None, 0, 0, 0, ()) if mapping is not None else None
        if mapping is not None and key:
            item = self.store_of.live(mapping.table, key)
            value = self.store_of.value(mapping.table, item, self.registry.separator) if item else b""
            if item is not None and b"T" in flags.tokens:
                self.tally_touch(self.store_of.touch(mapping, key, flags.numbers[b"T"]) is not None)
        self.tally_get(words[1], item is not None)
        if item is None:
            return b"" if b"q" in flags.tokens else b"EN" + flags.shown(words[1])
        shown = flags.shown(words[1], {b"s": len(value), b"t": flags.left(item.expiry), b"c": item.cas,
                                       b"f": item.flags})
        return b"VA %d%s\r\n%s\r\n" % (len(value), shown, value) if b"v" in flags.tokens else b"HD" + shown

    def meta_delete(self, words: list[bytes]) -> bytes:
        """Delete an item, if it has the cas number of the flag C."""
        flags = Flags().read(words[2:], LETTERS + b"N", {}, ONE_FAULT)
        result = self.remove(words[1], *self.key_target(words[1]), flags.numbers.get(b"C"))
        is_silent = result == "DELETED" and b"q" in flags.tokens
        return b"" if is_silent else META[result] + flags.shown(words[1])

    def meta_count(self, words: list[bytes]) -> bytes:
        """Add to a number, subtract from it, or store the first one."""
        flags = Flags().read(words[2:], LETTERS + b"N", COUNTING, ONE_FAULT)
        numbers, verb = flags.numbers, COUNTING[flags.tokens.get(b"M", b"I")]
        mapping, key = self.key_target(words[1])
        item = self.store_of.live(mapping.table, key) if mapping is not None and key else None
        if mapping is not None and b"T" in numbers:
            self.store_of.check_expiry(mapping, numbers[b"T"])
        if item is not None and numbers.get(b"C", 0) not in (0, item.cas):
            return b"EX" + flags.shown(words[1])
        total = None
        if mapping is not None and key and item is not None:
            total = self.store_of.count(mapping.table, key, numbers.get(b"D", 1), verb == "decr")
        elif mapping is not None and key and b"N" in numbers and b"C" not in numbers:
            total = numbers.get(b"J", 0)
            first = Write("add", key, b"%d" % total, 0, numbers[b"N"])
            self.store_of.store(mapping, first, self.registry.separator)
        self.counters.add(f"{verb}_misses" if item is None else f"{verb}_hits")
        if mapping is None or key is None or total is None:
            return b"NF" + flags.shown(words[1])
        row = self.store_of.row(mapping.table, key)
        if b"T" in numbers:
            self.store_of.touch(mapping, key, numbers[b"T"])
        shown = flags.shown(words[1], {b"t": flags.left(row.expiry if row else 1), b"c": row.cas if row else 0})
        if b"q" in flags.tokens:
            return b""
        value = b"%d" % total
        return b"VA %d%s\r\n%s\r\n" % (len(value), shown, value) if b"v" in flags.tokens else b"HD" + shown

    def meta_debug(self, words: list[bytes]) -> bytes:
        """Describe an item."""
        if len(words) < 2 or len(words[1]) > KEY_MAX:
            return BAD_FORMAT
        self.counters.add("cmd_meta")
        mapping, key = self.target(words[1])
        if key is not None and range_of(key) is not None:
            return b"CLIENT_ERROR me takes no range: get it"
        item = self.store_of.live(mapping.table, key) if mapping is not None and key else None
        if mapping is None or key is None or item is None:
            return b"EN"
        size = len(key) + len(self.store_of.value(mapping.table, item, self.registry.separator))
        expiry = -max(item.expiry - int(time.time()), 0) if item.expiry > 0 else -1
        return b"ME %s exp=%d la=%d cas=%d fetch=no cls=0 size=%d" % (words[1], expiry, time.time(), item.cas, size)
