"""The reply reader: whole replies, late ones, none, closed connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from kvref_conformance.corpus.silences import NORMAL, Silences
from kvref_conformance.errors import CannotJudge
from kvref_conformance.steps import AwaitReply, Send
from kvref_conformance.wire.connection import (
    MAX_ANSWER_BYTES,
    MAX_SHOWN_BYTES,
    Connection,
    Reply,
    version_line,
)
from kvref_conformance.wire.sentinels import Sentinels

VERSION = b"VERSION 9.9.9\r\n"
Make = Callable[..., Any]
Connect = Callable[[Any], Connection]


@pytest.fixture
def connect() -> Iterator[Callable[[Any], Connection]]:
    """Return a function that connects to a scripted endpoint."""
    with ExitStack() as stack:
        yield lambda server: stack.enter_context(Connection(server.address, VERSION))


def test_a_reply_may_hold_text_like_the_sentinel(scripted: Make, connect: Connect) -> None:
    value = b"VALUE a 0 22\r\nVERSION 9.9.9 and more\r\nEND\r\n"
    assert connect(scripted({b"get a": value})).exchange((b"get a\r\n",)).data == value


def test_version_lines_of_the_answer_itself_are_counted(scripted: Make, connect: Connect) -> None:
    assert connect(scripted()).exchange((b"version\r\n",), versions=1).data == VERSION


def test_a_version_line_that_comes_before_the_rest_does_not_end_the_answer() -> None:
    ours, theirs = socket.socketpair()
    with theirs, Connection(ours, VERSION) as connection, ThreadPoolExecutor() as pool:
        connection.begin((b"version x\r\nset a 0 0 1\r\nx\r\n",), 0.0)
        theirs.sendall(VERSION)
        connection.receive()
        reply = pool.submit(connection.end, 5.0)
        theirs.sendall(b"STORED\r\n" + VERSION)
        assert reply.result() == Reply(VERSION + b"STORED\r\n")


def test_commands_may_come_in_pieces(scripted: Make, connect: Connect) -> None:
    server = scripted({b"get abc": b"END\r\n"})
    assert connect(server).exchange((b"ge", b"t a", b"bc\r\n")).data == b"END\r\n"
    assert server.lines == [b"get abc", b"version"]


FLOOD = b"VALUE a 0 1000000000000\r\n" + b"x" * (2 * MAX_ANSWER_BYTES)


def test_an_answer_beyond_the_limit_closes_the_connection(scripted: Make, connect: Connect) -> None:
    to = connect(scripted({b"get a": FLOOD}))
    reply = to.exchange((b"get a\r\n",), patience=60)
    assert reply == Reply(FLOOD[:MAX_SHOWN_BYTES], limit=MAX_ANSWER_BYTES)
    assert (
        reply.note(60)
        == f"more than {MAX_ANSWER_BYTES} bytes without the end of a reply: the suite closed the connection"
    )
    assert to.exchange((b"get b\r\n",)) == reply, "the connection is closed, for the same reason"


def test_a_longer_answer_that_is_allowed_is_read_whole(scripted: Make, connect: Connect) -> None:
    long = b"VALUE a 0 %d\r\n%s\r\nEND\r\n" % (MAX_ANSWER_BYTES, b"x" * MAX_ANSWER_BYTES)
    to = connect(scripted({b"get a": long}))
    to.allow(len(long))
    assert to.exchange((b"get a\r\n",), patience=60) == Reply(long)


def test_a_version_line_byte_by_byte_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is that of the whole line, not of each byte."""
    monkeypatch.setattr("kvref_conformance.wire.connection.CONNECT_SECONDS", 0.5)
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def trickle() -> None:
            connection, _ = listener.accept()
            with connection:
                while not done.wait(0.1):
                    connection.sendall(b"V")

        thread = threading.Thread(target=trickle)
        thread.start()
        try:
            with pytest.raises(CannotJudge, match="did not answer `version` within"):
                version_line(listener.getsockname())
        finally:
            done.set()
            thread.join()


def test_every_line_of_the_judge_has_the_limit(scripted: Make) -> None:
    """Recordings read without sentinels, and duels learn theirs from the server."""
    server = scripted({b"get a": FLOOD})
    received = f"more than {MAX_ANSWER_BYTES} bytes without the end of a reply: the suite closed the connection"
    begin = FLOOD[:MAX_SHOWN_BYTES]
    recording, silences = Connection(server.address), Silences(NORMAL)
    assert silences.send(recording, Send(("get a",), ()), (b"get a\r\n",)) == Reply(begin)
    assert silences.ending(recording) == f"<{received}>"
    duelling, replies = Connection(server.address), Sentinels()
    replies.start(duelling, Send(("get a",), ()), (b"get a\r\n",))
    reply = replies.receive(duelling, AwaitReply((), "a", 60))
    assert (reply, reply.note(60)) == (Reply(begin, limit=MAX_ANSWER_BYTES), received)


def test_draining_ends_at_its_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for closes in (False, True):
            connection = Connection(listener.getsockname())
            peer, _ = listener.accept()
            with peer:
                peer.sendall(b"x" * 1000)
                if closes:
                    peer.close()
                assert connection.drain(60 if closes else 0.1) == closes


def test_nobody_listening_is_reported(unused_port: int) -> None:
    with pytest.raises(CannotJudge, match=f"cannot reach 127.0.0.1:{unused_port}: Connection refused"):
        version_line(("127.0.0.1", unused_port))


def test_an_endpoint_that_hangs_up_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            connection, _ = listener.accept()
            connection.recv(64)
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(CannotJudge, match="is not a memcached endpoint"):
            version_line(listener.getsockname())
        thread.join()
