"""Conversations drawn for servers that must answer alike: commands on odd tables, pipelined, split, of several clients.

Names of containers and tables end in `~` where the servers share a database: each has its own tables there, and
`Peer` puts what is the server's own in its place.
"""

from __future__ import annotations

import random
import re
import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from helpers.serving import Served

from kvref.engine.counters import COUNTED

CLIENTS = 3
# Those of one row, whatever the collation, have the same place.
KEYS = (
    (b"a", b"A", b"a:1", b"7", b"07", b"\xc3\xa4"),
    (b"b", b"B", b"key-10", b"@x"),
    (b"c", b"longer-than-8", b"z\xff", b"12"),
)
VALUES = (
    b"",
    b"x",
    b"12",
    b"007",
    b"1e3",
    b"-1",
    b"no",
    b"\xc3\xa4",
    b"\xff",
    b"hello",
    b"more than twelve",
    b"y" * 300,
)
FLAGS = (0, 5, 999_999_999, 4_294_967_295)
_SAID_CAS = re.compile(rb"^(VALUE \S+ \d+ \d+) \d+\r$|(?<=[ \w]) c\d+(?= |\r$)", re.MULTILINE)
# Of commands and items; bytes and connections differ with the names of tables and the second of a request.
_COUNTED = frozenset(COUNTED) - {"bytes_read", "bytes_written", "total_connections"}
# The flag t of a meta reply: the seconds that an item has left.
_REMAINING = re.compile(rb"(?<= t)\d+(?= |\r$)", re.MULTILINE)
# Each server reads its clock when it stores an item and when it answers; a second may begin between two servers both times.
_CLOCK_READINGS = 2


def command(
    chance: random.Random, containers: Sequence[bytes], keys: Sequence[bytes], *, empties: bool = True
) -> bytes:
    """Draw one command.

    Args:
        chance: draws.
        containers: names that it may bind or read from.
        keys: it may name.
        empties: it may be flush_all.
    """
    key, value, flags = chance.choice(keys), chance.choice(VALUES), chance.choice(FLAGS)
    store = b" %b %d %d %d" % (key, flags, chance.choice([0, 0, 0, 100]), len(value))
    more = b" ".join(chance.choices(keys, k=3))
    if chance.random() < 0.05:
        last = chance.choice([b"", b" noreply"])
        return b"".join([b"delete %b%b\r\n" % (each, last) for each in chance.choices(keys, k=4)])
    if chance.random() < 0.5:
        return b"".join(plain(chance, containers, keys) for _ in range(chance.choice([1, 1, 4])))
    return chance.choice([
        b"get %b\r\n" % key, b"get %b\r\n" % key, b"get %b %b\r\n" % (key, more), b"gets %b\r\n" % key,
        b"set%b\r\n%b\r\n" % (store, value), b"set%b\r\n%b\r\n" % (store, value), b"set%b\r\n%b\r\n" % (store, value),
        b"set%b noreply\r\n%b\r\n" % (store, value), b"add%b\r\n%b\r\n" % (store, value),
        b"append%b\r\n%b\r\n" % (store, value), b"delete %b\r\n" % key, b"incr %b 5\r\n" % key, b"touch %b 0\r\n" % key,
        b"get @@%b.%b\r\n" % (chance.choice(containers), key), b"bind %b\r\n" % chance.choice(containers),
        b"bind %b\r\n" % chance.choice(containers), b"set %b 0 0 5\r\nshort\r\n" % key, b"get  %b\r\n" % key,
        b"mg %b v f\r\n" % key, b"get @>a\r\n" if empties else b"mn\r\n", b"flush_all\r\n" if empties else b"mn\r\n",
        b"get\r\n", b"get %b\nget %b\r\n" % (key, key), b"set %b 0 0 -1\r\n" % key,
    ])  # fmt: skip


def plain(chance: random.Random, containers: Sequence[bytes], keys: Sequence[bytes]) -> bytes:
    """Draw a command that a fast path may take."""
    key, value = chance.choice(keys), chance.choice(VALUES)
    last = chance.choice([b"", b"", b" noreply"])
    if chance.random() < 0.4:
        return b"get %b\r\n" % key
    if chance.random() < 0.3:
        return b"set %b %d 0 %d%b\r\n%b\r\n" % (key, chance.choice(FLAGS), len(value), last, value)
    word = b"@@%b.%b" % (chance.choice(containers), key) if chance.random() < 0.2 else key
    verb = chance.choice([b"set", b"add", b"replace"])
    shown = b" ".join(chance.sample([b"v", b"f", b"s", b"k", b"c", b"t", b"Oab", b"h"], 3))
    return chance.choice([
        b"gets %b\r\n" % word, b"get %b %b\r\n" % (word, chance.choice(keys)), b"mg %b %b\r\n" % (word, shown),
        b"%b %b 5 %d %d%b\r\n%b\r\n" % (verb, word, chance.choice([0, 100, 500_000_000]), len(value), last, value),
        b"%b %b %d%b\r\n" % (chance.choice([b"incr", b"decr"]), word, chance.choice([0, 5, 10**15]), last),
        b"set %b 0 0 2%b\r\n12\r\n" % (word, last), b"delete %b%b\r\n" % (word, last),
    ])  # fmt: skip


# Opcode, key, extras and value of a frame of the binary protocol.
Frame = tuple[int, bytes, bytes, bytes]
_HEADER = struct.Struct(">BBHBBHI4sQ")
_VERSION = 0x0B
_ANSWERED = (0x00, 0x01, 0x02, 0x03, 0x0A, 0x0C)  # a get, also of a missing key, a noop, and what stores something
_MARK = b"mark"


def frame(opcode: int, key: bytes, extras: bytes = b"", value: bytes = b"") -> bytes:
    """Return a request of the binary protocol."""
    body = extras + key + value
    return _HEADER.pack(0x80, opcode, len(key), len(extras), 0, 0, len(body), _MARK, 0) + body


def frames(chance: random.Random, containers: Sequence[bytes]) -> list[Frame]:
    """Draw commands of the binary protocol, mostly gets and sets, which a fast path may take together."""
    keys = [key for keys in KEYS for key in keys]
    found: list[Frame] = []
    reads = chance.choice([0.8, 0.8, 0.2])
    for _ in range(chance.choice([1, 1, 3, 9, 80])):
        key, value = chance.choice(keys), chance.choice(VALUES)
        word = b"@@%b.%b" % (chance.choice(containers), key) if chance.random() < 0.1 else key
        stored = struct.pack(">II", chance.choice(FLAGS), chance.choice([0, 0, 100, 2_000_000_000, (1 << 32) - 1]))
        if chance.random() < reads:
            found.append((chance.choice([0x00, 0x09, 0x0C, 0x0D, 0x0D]), word, b"", b""))
        else:
            found.append(chance.choice([
                (0x01, word, stored, value), (0x11, word, stored, value), (0x02, word, stored, value),
                (0x12, word, stored, value), (0x03, word, stored, value), (0x13, word, stored, value),
                (0x01, word, stored[:4] + bytes(4), value), (0x01, b"k" * 250, stored, value),
                (0x04, word, b"", b""), (0x05, word, struct.pack(">QQI", 5, 1, 0), b""), (0x00, b"two words", b"", b""),
                (0x0E, word, b"", value), (0x0A, b"", b"", b""), (0x0A, b"", b"", b""),
            ]))  # fmt: skip
    return found


class Peer:
    """One server in a conversation.

    Args:
        served: the server.
        stack: closes the connections.
        own: replaces `~`, which nothing else that is sent contains.
        hides_cas: removes cas numbers from replies, which differ if clients send at once.
    """

    def __init__(self, served: Served, stack: ExitStack, own: bytes = b"~", *, hides_cas: bool = True) -> None:
        self._sockets = [stack.enter_context(served.connect()) for _ in range(CLIENTS)]
        self._served, self._stack = served, stack
        self._binary = stack.enter_context(served.connect())
        self.own = own
        self.hides_cas = hides_cas

    def ask(self, number: int, data: bytes, cuts: Sequence[int] = ()) -> bytes:
        """Send bytes in pieces on a connection; return the reply up to a mark behind them."""
        self.send(number, data, cuts)
        return self.answer(number, data)

    def exchange_frames(self, sent: Sequence[Frame], cut: float) -> list[tuple[object, ...]]:
        """Send frames on the binary connection, in two pieces, and a mark behind them; return the replies, `closed` last where it is closed.

        Args:
            sent: the frames.
            cut: where the first piece ends, as a share of the bytes.
        """
        data = b"".join(self._frame(opcode, key, extras, value) for opcode, key, extras, value in sent)
        for piece in filter(None, (data[: int(cut * len(data))], data[int(cut * len(data)) :])):
            self._binary.sendall(piece)
        if sent[-1][0] in _ANSWERED:
            self._binary.recv(1, socket.MSG_PEEK)  # they may be all that the server reads at once
        self._binary.sendall(self._frame(_VERSION, b"", b"", b""))
        received: list[tuple[object, ...]] = []
        while (header := self._exactly(_HEADER.size)) is not None:
            _, opcode, key_length, extras_length, _, status, length, opaque, cas = _HEADER.unpack(header)
            body = self._exactly(length)
            if opcode == _VERSION:
                return received
            assert body is not None, received
            received.append(
                (
                    opcode,
                    status,
                    key_length,
                    extras_length,
                    opaque,
                    0 if self.hides_cas else cas,
                    body.replace(self.own, b"~"),
                )
            )
        self._binary = self._stack.enter_context(self._served.connect())
        return [*received, ("closed",)]

    def _frame(self, opcode: int, key: bytes, extras: bytes, value: bytes) -> bytes:
        return frame(opcode, key.replace(b"~", self.own), extras, value)

    def _exactly(self, size: int) -> bytes | None:
        """Return so many bytes of the binary connection; None where it is closed."""
        received = b""
        while len(received) < size:
            piece = self._binary.recv(size - len(received))
            if not piece:
                return None
            received += piece
        return received

    def send(self, number: int, data: bytes, cuts: Sequence[int] = ()) -> None:
        """Send bytes in pieces on a connection."""
        whole = data.replace(b"~", self.own)
        for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            self._sockets[number].sendall(whole[start:end])

    def answer(self, number: int, data: bytes) -> bytes:
        """Return what is answered to `data` on a connection, up to a mark behind it.

        The mark is sent when something is answered, so that a command may be alone in what arrives.
        """
        received = b"" if b"noreply" in data else self._sockets[number].recv(1 << 16)
        self._sockets[number].sendall(b"version\r\n")
        while b"VERSION " not in received or not received.endswith(b"\r\n"):
            piece = self._sockets[number].recv(1 << 16)
            assert piece, received
            received += piece
        received = received.replace(self.own, b"~")
        return (
            _SAID_CAS.sub(lambda found: b"%b\r" % found[1] if found[1] else b" c", received)
            if self.hides_cas
            else received
        )

    def counters(self) -> list[bytes]:
        """Return what `stats` counts of commands and items."""
        received = self.ask(0, b"stats\r\n")
        rows = [line for line in received.splitlines() if line.startswith(b"STAT ")]
        return [line for line in rows if line.split()[1].decode() in _COUNTED]


def converse(
    chance: random.Random,
    peers: Sequence[Peer],
    containers: Sequence[bytes],
    steps: int,
    by_sql: Callable[[], bytes],
) -> None:
    """Have the same conversation with all servers; fails where one answers otherwise than the first.

    Args:
        chance: draws.
        peers: the first has no fast path.
        containers: names that commands use.
        steps: how many times bytes are sent; by several clients at once only where answers have no cas numbers.
        by_sql: compares a table of all servers and changes it alike; returns a container of its rows.
    """
    every_key = [key for keys in KEYS for key in keys]
    for step in range(steps):
        if chance.random() < 0.15:
            _look(chance, peers, by_sql(), every_key)
        if chance.random() < 0.25:
            sent, cut = frames(chance, containers), chance.choice([0, 0, chance.random()])
            general, *fast = [peer.exchange_frames(sent, cut) for peer in peers]
            assert all(each == general for each in fast), (step, sent, general, fast)
        if peers[0].hides_cas and chance.random() < 0.3:
            _at_once(chance, peers, containers, step)
            continue
        data = b"".join(command(chance, containers, every_key) for _ in range(chance.choice([1, 1, 1, 4, 12])))
        number = chance.randrange(CLIENTS)
        cuts = sorted(chance.sample(range(len(data)), 1)) if chance.random() < 0.2 else []
        received, *others = [peer.ask(number, data, cuts) for peer in peers]
        assert all(is_same(received, each) for each in others), (step, data, received, others)


def _look(chance: random.Random, peers: Sequence[Peer], container: bytes, keys: Sequence[bytes]) -> None:
    """Read all rows of a container, so that what SQL has done to a few of them is seen."""
    number, key = chance.randrange(CLIENTS), chance.choice(keys)
    gets = b"".join(b"get %b\r\n" % each for each in keys)
    for data in (b"bind %b\r\n" % container, gets, b"get %b\r\n" % key, b"gets %b\r\nmg %b t f\r\n" % (key, key)):
        general, *fast = [peer.ask(number, data) for peer in peers]
        assert all(is_same(general, each) for each in fast), (container, data, general, fast)


def is_same(first: bytes, second: bytes) -> bool:
    """Return whether two replies are equal, but for the remaining seconds of an item as far as clocks explain them."""
    if _REMAINING.sub(b"", first) != _REMAINING.sub(b"", second):
        return False
    pairs = zip(_REMAINING.findall(first), _REMAINING.findall(second), strict=True)
    return all(abs(int(one) - int(other)) <= _CLOCK_READINGS for one, other in pairs)


def _at_once(chance: random.Random, peers: Sequence[Peer], containers: Sequence[bytes], step: int) -> None:
    """Let all clients send at once, each for its own rows, so that the order of arrival does not matter."""
    requests = [
        b"".join(command(chance, containers, keys, empties=False) for _ in range(chance.choice([1, 1, 6])))
        for keys in KEYS
    ]
    answers = []
    for peer in peers:
        for number, data in enumerate(requests):
            peer.send(number, data)
        answers.append([peer.answer(number, data) for number, data in enumerate(requests)])
    for each in answers[1:]:
        assert all(map(is_same, answers[0], each)), (step, requests, answers)
