"""Traffic: which reply belongs to which command, what a mask keeps, and what a recording and a replay have of it."""

from __future__ import annotations

import asyncio
import io
import json
import queue
import socket
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvref.addresses import SocketAddress, connect, parse_address
from kvref_conformance import corpus
from kvref_conformance.corpus.templates import without_placeholders
from kvref_conformance.traffic import proxy as proxy_module
from kvref_conformance.traffic import show
from kvref_conformance.traffic.dialogue import Dialogue, NotRecordableError
from kvref_conformance.traffic.mask import Mask
from kvref_conformance.traffic.proxy import Proxy
from kvref_conformance.traffic.recorder import Recorder, Source
from kvref_conformance.traffic.replay import read, replay
from kvref_conformance.wire.frames import encode

if TYPE_CHECKING:
    from collections.abc import Iterator

MASK = Mask(b"0123456789abcdef")
SOURCE = Source("127.0.0.1:1", "server-1.6.18", "2026-01-01T00:00:00Z")

# What a client sends, and what a server answers to each command; None: to none.
TALK = [
    (b"set k 0 0 5\r\nEND\r\n\r\n", b"STORED\r\n"),
    (b"get k missing\r\n", b"VALUE k 0 5\r\nEND\r\n\r\nEND\r\n"),
    (b"set k 0 0 1 noreply\r\nx\r\n", None),
    (b"gets k\r\n", b"VALUE k 0 1 77\r\nx\r\nEND\r\n"),
    (b"cas k 0 0 1 77\r\ny\r\n", b"STORED\r\n"),
    (b"stats\r\n", b"STAT pid 1\r\nSTAT version END\r\nEND\r\n"),
    (b"mg k v\r\n", b"VA 4\r\nEN\r\n\r\n"),
    (b"mg k v q\r\n", None),
    (b"ms k 2 q\r\nMN\r\n", None),
    (b"mn\r\n", b"MN\r\n"),
    (b"incr k 1\r\n", b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
    (b"nonsense\r\n", b"ERROR\r\n"),
    (b"lru_crawler metadump all\r\n", b"key=k exp=-1 la=1 cas=1 fetch=no cls=1 size=1\r\nEND\r\n"),
    (b"quit\r\n", None),
]
FRAMES = [
    (encode("set key=k flags=1 value=v"), bytes.fromhex("810100000000000000000000000000000000000000000011")),
    (encode("getq key=gone opaque=7"), None),
    (encode("setq key=k opaque=8 value=w"), None),
    (encode("noop opaque=9"), bytes.fromhex("810a000000000000000000000000000900000000000000ff")[:24]),
]
FRAMES[3] = (FRAMES[3][0], bytes.fromhex("810a00000000000000000000") + FRAMES[3][0][12:16] + bytes(8))


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[place : place + size] for place in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 2, 7, 1 << 20])
@pytest.mark.parametrize("talk", [TALK, FRAMES], ids=["text", "binary"])
def test_each_reply_belongs_to_its_command_however_bytes_are_split(
    talk: list[tuple[bytes, bytes | None]], size: int
) -> None:
    dialogue, found = Dialogue(), []
    for data in cut(b"".join(sent for sent, _ in talk), size):
        found += dialogue.sent(data, 1.5)
    for data in cut(b"".join(reply or b"" for _, reply in talk), size):
        found += dialogue.received(data)
    assert [(each.command.data, each.reply or None) for each in found if each.command] == talk
    assert dialogue.closed() == []
    assert dialogue.size == 0


def test_a_reply_that_was_cut_off_belongs_to_the_first_command() -> None:
    dialogue = Dialogue()
    dialogue.sent(b"get a\r\nget b\r\n")
    assert dialogue.received(b"VALUE a 0 5\r\nab") == []
    assert [(each.command and each.command.keys, each.reply) for each in dialogue.closed()] == [
        ((b"a",), b"VALUE a 0 5\r\nab"),
        ((b"b",), b""),
    ]


@pytest.mark.parametrize("data", [b"x" * 70_000, b"set k 0 0 999999999\r\n", b"watch fetchers\r\n"])
def test_what_exceeds_a_limit_is_not_recorded(data: bytes) -> None:
    with pytest.raises(NotRecordableError):
        Dialogue().sent(data)


def test_a_mask_depends_on_the_secret_and_hides_keys_and_values() -> None:
    other = Mask(b"another secret of 16 bytes")
    key, value = b"customer:4711", b'{"name": "Ada"}'
    assert MASK.key(key) == MASK.key(key)
    assert len({key, MASK.key(key), other.key(key)}) == 3
    assert len({value, MASK.value(value), other.value(value)}) == 3
    assert len(MASK.value(value)) == len(value)
    assert MASK.key(b"@@orders.x17")[:9] == b"@@orders."
    assert MASK.key(b"@@orders") == b"@@orders"


@given(st.integers(0, 10**19))
def test_a_masked_number_is_a_number_of_the_same_length(number: int) -> None:
    masked = MASK.value(str(number).encode())
    assert len(str(int(masked))) == len(str(number))


def recorded(talk: list[tuple[bytes, bytes | None]], mask: Mask | None = None) -> list[dict[str, object]]:
    """Record a conversation on one connection; return its parts."""
    file = io.StringIO()
    writer, dialogue = Recorder(file, SOURCE, mask), Dialogue()
    for number, (sent, reply) in enumerate(talk):
        exchanges = dialogue.sent(sent, float(number))
        exchanges += [] if reply is None else dialogue.received(reply)
        for exchange in exchanges:
            at = 0.0 if exchange.command is None else exchange.command.at
            writer.exchange("c1", exchange, at, 0.25 if exchange.reply else 0.0)
    writer.closed("c1", 99.0)
    writer.flush()
    return [json.loads(line) for line in file.getvalue().splitlines()]


def test_a_recording_has_the_one_format_with_times_and_holes() -> None:
    for talk in (TALK, FRAMES):
        (part,) = recorded(talk)
        jsonschema.Draft202012Validator(corpus.schema()).validate(part)
    (part,) = recorded(TALK)
    steps = part["steps"]
    assert isinstance(steps, list)
    assert steps[3] == {
        "send": {"on": "c1", "packets": ["gets k\r\n"]},
        "got": {"server-1.6.18": ["VALUE k 0 1 ", {"cas": 1}, "\r\nx\r\nEND\r\n"]},
        "at": 3.0,
        "took": 0.25,
    }
    assert steps[4]["send"] == {"on": "c1", "packets": ["cas k 0 0 1 {c1}\r\ny\r\n"]}
    assert steps[2] == {"send": {"on": "c1", "packets": ["set k 0 0 1 noreply\r\nx\r\n"], "quiet": True}, "at": 2.0}
    assert steps[-1] == {"hang up": {"on": "c1", "how": "close"}, "at": 99.0}


SECRETS = (b"customer17", b"Ada Lovelace", b"hunter2hunter2", b"Zm9vYmFyYmF6")
SECRET_TALK = [
    (b"set customer17 0 0 12\r\nAda Lovelace\r\n", b"STORED\r\n"),
    (b"get customer17\r\n", b"VALUE customer17 0 12\r\nAda Lovelace\r\nEND\r\n"),
    (b"mg customer17 k v\r\n", b"VA 12 kcustomer17\r\nAda Lovelace\r\n"),
    (b"mg Zm9vYmFyYmF6 b k\r\n", b"HD kZm9vYmFyYmF6 b\r\n"),
    (b"me customer17\r\n", b"ME customer17 exp=-1\r\n"),
    (b"add customer17 0 0 12\r\nAda Lovelace\r\n", b"SERVER_ERROR Duplicate entry 'customer17' for key\r\n"),
    (b"lru_crawler metadump all\r\n", b"key=customer17 exp=-1\r\nEND\r\n"),
    (b"unknown customer17\r\n", b"ERROR\r\n"),
    (b"append customer17 0 0 14\r\nhunter2hunter2\r\n", b"STORED\r\n"),
    (b"get customer17\r\n", b"VALUE customer17 0 26\r\nAda Lovelacehunter2hunter2\r\nEND\r\n"),
]


def test_a_masked_recording_has_no_key_and_no_value_anywhere() -> None:
    (part,) = recorded(SECRET_TALK, MASK)
    text = json.dumps(part).encode()
    assert [secret for secret in SECRETS if secret in text] == []
    steps = part["steps"]
    assert isinstance(steps, list)
    masked = MASK.key(b"customer17").decode()
    assert steps[0]["send"]["packets"][0].startswith(f"set {masked} 0 0 12\r\n")
    assert steps[1]["got"]["server-1.6.18"] == f"VALUE {masked} 0 12\r\n{MASK.value(SECRETS[1]).decode()}\r\nEND\r\n"
    assert steps[9]["got"]["server-1.6.18"] == {"bytes": "masked"}
    frames = [
        (encode("set key=customer17 value=Ada"), None),
        (encode("sasl_auth key=PLAIN value=%00customer17%00hunter2hunter2"), None),
    ]
    dialogue = Dialogue()
    for sent, _ in frames:
        dialogue.sent(sent)
    for command in dialogue.waiting:
        shown = MASK.command(command)
        assert len(shown) == len(command.data)
        assert [secret for secret in (*SECRETS, b"Ada") if secret in shown] == []


# A server that knows enough for these tests: each line that it gets, with its data, has a reply from a table.
@contextmanager
def answering(replies: dict[bytes, bytes]) -> Iterator[tuple[str, int]]:
    """Serve one reply for each command, `STORED` where the table has none; close on `quit`."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    def talk(connection: socket.socket) -> None:
        dialogue = Dialogue()
        with connection, suppress(NotRecordableError):
            while data := connection.recv(1 << 16):
                done = dialogue.sent(data)
                for command in (*(each.command for each in done), *dialogue.waiting):
                    if command is None or command.verb == "quit":
                        return
                    if not command.silent:
                        reply = replies.get(
                            command.data, b"VERSION 1\r\n" if command.verb == "version" else b"STORED\r\n"
                        )
                        connection.sendall(reply)
                        dialogue.received(reply)

    threading.Thread(target=serve, daemon=True).start()
    with listener:
        yield listener.getsockname()[:2]
        listener.shutdown(socket.SHUT_RDWR)


def recording(folder: Path, talk: list[tuple[bytes, bytes | None]]) -> Path:
    file = folder / "traffic.jsonl"
    file.write_text("".join(json.dumps(part) + "\n" for part in recorded(talk)))
    return file


PLAIN = [
    (b"set k 0 0 1\r\nx\r\n", b"STORED\r\n"),
    (b"get k\r\n", b"VALUE k 0 1\r\nx\r\nEND\r\n"),
    (b"set k 0 0 1 noreply\r\ny\r\n", None),
    (b"delete k\r\n", b"DELETED\r\n"),
    (b"delete k\r\n", b"NOT_FOUND\r\n"),
    (b"gets old\r\n", b"VALUE old 0 1 5\r\nx\r\nEND\r\n"),
]


def test_a_difference_names_the_requirement_that_the_recorded_reply_is_about(tmp_path: Path) -> None:
    file = recording(tmp_path, PLAIN)
    replies = {
        b"get k\r\n": b"VALUE k 0 1\r\nx\r\nEND\r\n",
        b"delete k\r\n": b"DELETED\r\n",
        b"gets old\r\n": b"END\r\n",
    }
    with answering(replies) as address:
        result = replay(read(file), address)
    assert (result.commands, result.same, result.earlier, result.counts.total()) == (6, 4, 1, 1)
    (cause,) = result.counts
    assert (cause.verb, cause.recorded, cause.observed) == ("delete", "NOT_FOUND", "DELETED")
    assert cause.requirements()[0].startswith("KV-")
    assert "delete" in show.text(result)
    found = show.as_json(result)
    assert found["groups"][0]["causes"][0]["examples"][0]["where"] == "traffic-1, step 5"


def test_a_number_of_the_endpoint_takes_the_place_of_a_recorded_cas_number(tmp_path: Path) -> None:
    talk = [
        (b"set k 0 0 1\r\nx\r\n", b"STORED\r\n"),
        (b"gets k\r\n", b"VALUE k 0 1 77\r\nx\r\nEND\r\n"),
        (b"cas k 0 0 1 77\r\ny\r\n", b"STORED\r\n"),
    ]
    replies = {
        b"gets k\r\n": b"VALUE k 0 1 123456\r\nx\r\nEND\r\n",
        b"cas k 0 0 1 123456\r\ny\r\n": b"STORED\r\n",
        b"cas k 0 0 1 77\r\ny\r\n": b"EXISTS\r\n",
    }
    with answering(replies) as address:
        result = replay(read(recording(tmp_path, talk)), address)
    assert (result.same, result.counts.total()) == (3, 0)


def test_simultaneous_changes_are_not_compared(tmp_path: Path) -> None:
    (part,) = recorded([(b"set k 0 0 1\r\nx\r\n", b"STORED\r\n"), (b"get k\r\n", b"VALUE k 0 1\r\nx\r\nEND\r\n")])
    steps = part["steps"]
    assert isinstance(steps, list)
    other = {
        "send": {"on": "c2", "packets": ["set k 0 0 1\r\ny\r\n"]},
        "got": {"server-1.6.18": "STORED\r\n"},
        "at": 0.1,
        "took": 0.1,
    }
    steps.insert(1, other)
    file = tmp_path / "traffic.jsonl"
    file.write_text(json.dumps(part) + "\n")
    with answering({b"get k\r\n": b"VALUE k 0 1\r\ny\r\nEND\r\n"}) as address:
        result = replay(read(file), address)
    assert (result.same, result.concurrent, result.counts.total()) == (2, 1, 0)


@contextmanager
def proxied(server: SocketAddress, listen: SocketAddress) -> Iterator[tuple[SocketAddress, Proxy, io.StringIO]]:
    """Run a proxy in its own thread, and end it with the block."""
    file = io.StringIO()
    proxy = Proxy(server, Recorder(file, SOURCE))
    address: queue.Queue[str] = queue.Queue()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(proxy.run(listen, address.put, stop),))
    thread.start()
    try:
        yield parse_address(address.get(timeout=10)).socket_address, proxy, file
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()


def exchanged(address: SocketAddress, data: bytes, size: int) -> bytes:
    """Send bytes, close the sending side, and return what comes until so many bytes or the end."""
    received = b""
    with connect(address, 10) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while len(received) < size and (more := connection.recv(1 << 16)):
            received += more
    return received


def steps_of(file: io.StringIO) -> list[dict[str, object]]:
    return [step for line in file.getvalue().splitlines() for step in json.loads(line)["steps"]]


@pytest.mark.parametrize("unix", [False, True])
def test_a_proxy_passes_everything_on(tmp_path: Path, *, unix: bool) -> None:
    value = bytes(range(256)) * 20_000
    request = b"set k 0 0 %d\r\n%s\r\n" % (len(value), value)
    reply = b"VALUE k 0 %d\r\n%s\r\nEND\r\n" % (len(value), value)
    listen: SocketAddress = str(tmp_path / "socket") if unix else ("127.0.0.1", 0)
    with answering({b"get k\r\n": reply}) as server, proxied(server, listen) as (address, proxy, file):
        expected = b"STORED\r\n" + reply
        assert exchanged(address, request + b"get k\r\n", len(expected)) == expected
    steps = steps_of(file)
    assert [without_placeholders(*step["send"]["packets"]) for step in steps[:2]] == [
        request.decode("latin-1"),
        "get k\r\n",
    ]
    assert steps[1]["got"] == {"server-1.6.18": reply.decode("latin-1")}
    assert (proxy.counts.connections, proxy.counts.unrecorded, proxy.counts.buffered) == (1, 0, 0)


def test_what_is_no_memcached_protocol_is_passed_on_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    foreign = b"\x16\x03\x01" + b"x" * 70_000
    with answering({}) as server, proxied(server, ("127.0.0.1", 0)) as (address, proxy, file):
        exchanged(address, foreign, 1)
        assert exchanged(address, b"set k 0 0 1\r\nx\r\n", 8) == b"STORED\r\n"
    assert (proxy.counts.connections, proxy.counts.unrecorded, proxy.counts.buffered) == (2, 1, 0)
    assert "c1 is passed on and no longer recorded: a line of more than 65536 bytes" in caplog.text
    assert steps_of(file)[0]["send"]["on"] == "c2"


def test_memory_for_unfinished_commands_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_module, "MAX_BYTES", 100_000)
    half = b"set k 0 0 900000\r\n" + b"x" * 200_000
    with answering({}) as server, proxied(server, ("127.0.0.1", 0)) as (address, proxy, _):
        exchanged(address, half, 1)
    assert (proxy.counts.unrecorded, proxy.counts.buffered) == (1, 0)


def test_a_server_that_is_gone_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    with proxied(("127.0.0.1", 1), ("127.0.0.1", 0)) as (address, proxy, file):
        assert exchanged(address, b"", 1) == b""
    assert proxy.counts.unreachable == 1
    assert "the server cannot be reached" in caplog.text
    assert file.getvalue() == ""
