"""The text protocol with its meta commands: commands cut out of bytes, and replies in units that a fault can change.

Source: protocol.txt of memcached 1.6.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref_conformance.clients.store import EXISTS, MAX_KEY, NOT_A_NUMBER, NOT_FOUND, NOT_STORED, STORED, number_of
from kvref_conformance.wire.requests import cut, text_request
from kvref_conformance.wire.verbs import CR_LF, VERBS

if TYPE_CHECKING:
    from kvref_conformance.clients.store import Item, Store
    from kvref_conformance.wire.requests import Request

_STORES: Final = frozenset({"set", "add", "replace", "append", "prepend", "cas"})
_READS: Final = frozenset({"get", "gets", "gat", "gats"})
_META: Final = frozenset({"mg", "ms", "md", "ma", "mn", "me"})
_META_MODES: Final = {"s": "set", "e": "add", "r": "replace", "a": "append", "p": "prepend"}
_META_VERBS: Final = {"mg": "get", "ms": "set", "md": "delete", "ma": "incr", "mn": "noop", "me": "debug"}
_META_STATUS: Final = {STORED: "HD", NOT_STORED: "NS", EXISTS: "EX", NOT_FOUND: "NF"}
_TOO_LONG: Final = b"CLIENT_ERROR line too long\r\n"
_BAD: Final = b"CLIENT_ERROR bad command line format\r\n"
_BAD_DELTA: Final = b"CLIENT_ERROR invalid numeric delta argument\r\n"
_BAD_TOKEN: Final = b"CLIENT_ERROR bad token in command line format\r\n"
_NUMBERS: Final = frozenset({b"C", b"F", b"D", b"J"})  # meta flags
_MAX_FLAGS: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Command:
    """A command of any protocol.

    Args:
        verb: in words of the text protocol: get also for gets and mg, incr also for ma.
        words: the words of the line.
        data: the data block of a storage command; for the binary protocol the frame.
        quiet: the client can do without this reply until another one comes.
        keys: keys as received; base64 keys decoded.
    """

    verb: str
    words: tuple[bytes, ...] = ()
    data: bytes = b""
    quiet: bool = False
    keys: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Raw:
    """A unit of bytes: a line, or whatever a fault sends."""

    data: bytes

    def render(self) -> bytes:
        """Return the bytes to send."""
        return self.data


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a get: its line and its data block.

    Args:
        key, flags, cas: words of the line; without a cas number it has three.
        value: data block.
        length: the announced length; empty: the actual length.
    """

    key: bytes
    flags: bytes
    value: bytes
    cas: bytes = b""
    length: bytes = b""

    def render(self) -> bytes:
        """Return the bytes to send."""
        length = self.length or b"%d" % len(self.value)
        line = b"VALUE %s %s %s%s\r\n" % (self.key, self.flags, length, b" " + self.cas if self.cas else b"")
        return line + self.value + b"\r\n"


@dataclass(frozen=True, slots=True)
class Meta:
    """A meta reply: its status, the returned flags, and the value of VA.

    Args:
        status: HD, VA, EN, NS, EX, NF, MN or another word.
        flags: returned flags, separated by a blank.
        value: data block of VA; None: no data block.
        length: the announced length; empty: the actual length.
    """

    status: bytes
    flags: bytes = b""
    value: bytes | None = None
    length: bytes = b""

    def render(self) -> bytes:
        """Return the bytes to send."""
        length = [] if self.value is None else [self.length or b"%d" % len(self.value)]
        line = b" ".join([self.status, *length, *([self.flags] if self.flags else [])]) + b"\r\n"
        return line if self.value is None else line + self.value + b"\r\n"


def take(buffer: bytearray) -> Command | None:
    """Cut the next command off the front of a buffer; None while it is not complete."""
    request = text_request(buffer)
    data = cut(buffer, request)
    return None if request is None or data is None else _command(request, data[request.head : -len(CR_LF)])


def _command(request: Request, data: bytes) -> Command:
    name, words = request.name, request.words
    if name in _META:
        flags = words[3 if name == "ms" else 2 :]
        keys = words[1:2]
        if b"b" in flags and keys:
            keys = (_decoded(keys[0]),)
        verb = _META_VERBS[name]
        mode = next((flag[1:].decode("latin-1") for flag in flags if flag[:1] == b"M"), "")
        if name == "ms" and mode:
            verb = _META_MODES.get(mode.lower(), "set")
        elif name == "ma" and mode.upper() in {"D", "-", "DECR"}:
            verb = "decr"
        return Command(verb, words, data, b"q" in flags, keys)
    keys = request.keys if name in VERBS and VERBS[name].batch else ()
    if name in _READS:
        return Command(name.removesuffix("s"), words, keys=keys)
    return Command(name, words, data, words[-1:] == (b"noreply",), keys)


def _decoded(key: bytes) -> bytes:
    try:
        return base64.b64decode(key, validate=True)
    except ValueError:
        return key


def answer(command: Command, store: Store) -> list[Raw | Row | Meta]:
    """Execute a command and return the units of its reply; none for noreply and for quiet meta commands."""
    if command.words and command.words[0].decode("latin-1") in _META:
        return _meta(command, store)
    if command.verb in {"get", "gat"}:
        return _rows(command, store)
    line = _line(command, store)
    return [] if command.quiet or command.verb == "quit" else [Raw(line)]


def _rows(command: Command, store: Store) -> list[Raw | Row | Meta]:
    if not command.keys:
        return [Raw(b"ERROR\r\n")]
    if any(len(key) > MAX_KEY for key in command.keys):
        return [Raw(_BAD)]
    with_cas = command.words[0] in {b"gets", b"gats"}
    found: list[Raw | Row | Meta] = []
    for key in command.keys:
        item = store.get(key)
        if item is not None:
            cas = b"%d" % item.cas if with_cas else b""
            found.append(Row(key, b"%d" % item.flags, item.value, cas))
    return [*found, Raw(b"END\r\n")]


def _line(command: Command, store: Store) -> bytes:
    verb, words = command.verb, command.words
    if any(len(key) > MAX_KEY for key in command.keys):
        return _TOO_LONG
    if verb in _STORES and len(words) - command.quiet == (6 if verb == "cas" else 5):
        return _stored(command, store)
    if verb in {"incr", "decr"} and len(words) - command.quiet == 3:
        by = number_of(words[2])
        return _BAD_DELTA if by is None else _counted(store.count(words[1], by if verb == "incr" else -by))
    if verb == "delete" and len(words) > 1:
        return b"DELETED\r\n" if store.delete(words[1]) == STORED else b"NOT_FOUND\r\n"
    if verb == "touch" and len(words) > 2:
        return b"TOUCHED\r\n" if store.get(words[1]) is not None else b"NOT_FOUND\r\n"
    if verb == "flush_all":
        store.clear()
        return b"OK\r\n"
    if verb == "stats":
        return b"STAT pid 1\r\nSTAT version 1.6.99\r\nEND\r\n"
    return {"version": b"VERSION 1.6.99\r\n", "verbosity": b"OK\r\n", "quit": b""}.get(verb, b"ERROR\r\n")


def _stored(command: Command, store: Store) -> bytes:
    words = command.words
    flags, cas = number_of(words[2]), number_of(words[5] if command.verb == "cas" else b"0")
    if flags is None or flags > _MAX_FLAGS or cas is None:
        return _BAD
    status = store.store(command.verb, words[1], command.data, flags, cas)
    return status.encode() + b"\r\n"


def _counted(result: int | str) -> bytes:
    if isinstance(result, int):
        return b"%d\r\n" % result
    if result == NOT_FOUND:
        return b"NOT_FOUND\r\n"
    return b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"


def _meta(command: Command, store: Store) -> list[Raw | Row | Meta]:
    name = command.words[0]
    if name == b"mn":
        return [Meta(b"MN")]
    key = command.keys[0] if command.keys else b""
    if not key or len(key) > MAX_KEY:
        return [Raw(_BAD)]
    flags = command.words[3 if name == b"ms" else 2 :]
    given = {flag[:1]: flag[1:] for flag in flags}
    numbers = _numbers(given)
    if numbers is None:
        return [Raw(_BAD_TOKEN)]
    if name == b"mg":
        item = store.get(key)
        if item is None:
            return [] if command.quiet else [Meta(b"EN", _returned(command, flags, None))]
        value = item.value if b"v" in given else None
        return [Meta(b"HD" if value is None else b"VA", _returned(command, flags, item), value)]
    if name == b"ma":
        return _meta_counted(command, store, numbers, flags)
    cas = numbers.get(b"C", 0)
    if name == b"md":
        status = store.delete(key, cas)
    elif name == b"ms":
        status = store.store(command.verb, key, command.data, numbers.get(b"F", 0), cas)
    else:
        return [Meta(b"EN")]
    if command.quiet and status == STORED:
        return []
    return [Meta(_META_STATUS[status].encode(), _returned(command, flags, store.get(key)))]


def _numbers(given: dict[bytes, bytes]) -> dict[bytes, int] | None:
    """Return the numbers that flags of a meta command have; None if one of them is none."""
    found = {}
    for sign in _NUMBERS & given.keys():
        number = number_of(given[sign] or b"0")
        if number is None or (sign == b"F" and number > _MAX_FLAGS):
            return None
        found[sign] = number
    return found


def _meta_counted(
    command: Command, store: Store, numbers: dict[bytes, int], flags: tuple[bytes, ...]
) -> list[Raw | Row | Meta]:
    by = numbers.get(b"D", 1)
    initial = numbers.get(b"J", 0) if any(flag[:1] == b"N" for flag in flags) else None
    key = command.keys[0]
    result = store.count(key, -by if command.verb == "decr" else by, initial)
    if result == NOT_A_NUMBER:
        return [Raw(_counted(result))]
    returned = _returned(command, flags, store.get(key))
    if isinstance(result, str):
        return [] if command.quiet else [Meta(b"NF", returned)]
    if b"v" in flags:
        return [Meta(b"VA", returned, b"%d" % result)]
    return [] if command.quiet else [Meta(b"HD", returned)]


def _returned(command: Command, flags: tuple[bytes, ...], item: Item | None) -> bytes:
    """Return the flags of a meta reply in the order of the request."""
    found = []
    for flag in flags:
        sign = flag[:1]
        if sign == b"O":
            found.append(flag)
        elif sign == b"k":
            found.append(b"k" + command.words[1])
        elif sign == b"b" and b"k" in flags:
            found.append(b"b")
        elif item is not None and command.verb not in {"delete"}:
            values = {b"f": item.flags, b"c": item.cas, b"s": len(item.value), b"t": -1, b"l": 0, b"h": 1}
            if len(flag) == 1 and sign in values:
                found.append(b"%s%d" % (sign, values[sign]))
    return b" ".join(found)
