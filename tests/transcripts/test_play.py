"""How a conversation is run: what is sent, how long it waits, what is recorded. The peer is scripted."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from kvref_conformance.corpus.conversation import Conversation, Recorded
from kvref_conformance.corpus.observe import Played, play
from kvref_conformance.corpus.silences import Pace
from kvref_conformance.corpus.templates import request
from kvref_conformance.steps import AwaitReply, Crowd, Disconnect, Eventually, Pause, Sql, Watch
from kvref_conformance.wire.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kvref_conformance.corpus.holes import Json

PACE = Pace(first=2.0, quiet=0.05, whole=0.1, broken=0.4)


class Peer:
    """A world in which `answer` returns the reply to each line; a number in it is a pause in seconds."""

    version = "0.0.0"

    def __init__(self, answer: Callable[[str], list[str | float] | None]) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port = self._listener.getsockname()[1]
        self.heard: list[str] = []
        self.statements: list[tuple[str, str]] = []
        self.results: dict[str, list[dict[str, Json]]] = {}
        self.finished = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # A conversation may end with a reset.
        with suppress(ConnectionError), connection, connection.makefile("r", encoding="latin-1", newline="\n") as lines:
            for line in lines:
                self.heard.append(line)
                pieces = self._answer(line)
                if pieces is None:
                    return
                for piece in pieces:
                    if isinstance(piece, str):
                        connection.sendall(piece.encode("latin-1"))
                    else:
                        time.sleep(piece)  # a silence that the player measures

    def prepare(self, conversation: Conversation) -> str:
        return ""

    def connect(self) -> Connection:
        return Connection(("127.0.0.1", self._port))

    def execute(self, name: str, statement: str) -> dict[str, Json]:
        self.statements.append((name, statement))
        results = self.results[statement]
        return results.pop(0) if len(results) > 1 else results[0]

    def server(self, action: str) -> str:
        return "closed"

    def exit_status(self) -> int | None:
        return None

    def finish(self) -> None:
        self.finished += 1

    def close(self) -> None:
        # A thread that waits in accept would keep a socket that is only closed.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def peer() -> Iterator[Callable[..., Peer]]:
    peers: list[Peer] = []

    def make(answer: Callable[[str], list[str | float] | None] = lambda line: [f"{line.strip()}?\r\n"]) -> Peer:
        peers.append(Peer(answer))
        return peers[-1]

    yield make
    for each in peers:
        each.close()


def held(target: Peer, *steps: Recorded) -> Played:
    return play(Conversation("x-001", "x", "a title", steps), target, PACE)


def got(played: Played) -> list[Json]:
    return [step.got for step in played.steps]


@pytest.mark.parametrize("second", [Recorded(request("a", "b\r\n")), Recorded(Pause(0.2))])
def test_bytes_behind_a_whole_answer_are_noticed(peer: Callable[..., Peer], second: Recorded) -> None:
    target = peer(lambda line: ["END\r\n", 0.15, "END\r\n"] if line == "a\r\n" else ["OK\r\n"])
    assert held(target, Recorded(request("a", "a\r\n")), Recorded(Pause(0.2)), second).late


def test_what_was_not_answered_yet_comes_with_a_later_step(peer: Callable[..., Peer]) -> None:
    target = peer(lambda line: [0.3, "STORED\r\n"])
    played = held(
        target,
        Recorded(request("a", "set\r\n", quiet=True)),
        Recorded(AwaitReply((), "a", 1.0)),
        Recorded(AwaitReply((), "a", 0.05)),
    )
    assert got(played) == ["", "STORED\r\n", ""]
    assert not played.late


def test_a_closed_connection_stays_closed(peer: Callable[..., Peer]) -> None:
    target = peer(lambda line: None)
    steps = [
        Recorded(request("a", "quit\r\n")),
        Recorded(request("a", "x\r\n")),
        Recorded(request("a", "x\r\n")),
        Recorded(AwaitReply((), "a", 0.0)),
        Recorded(request("b", "x\r\n")),
    ]
    assert got(held(target, *steps)) == ["<EOF>", "<EOF>", "<BrokenPipeError>", "<EOF>", "<EOF>"]


def test_nobody_listens(peer: Callable[..., Peer]) -> None:
    target = peer()
    target.close()
    assert (
        got(held(target, Recorded(request("a", "x\r\n")), Recorded(AwaitReply((), "a", 0.0))))
        == ["<ConnectionRefusedError>"] * 2
    )


def test_half_closed_connections_are_still_read(peer: Callable[..., Peer]) -> None:
    steps = Recorded(request("a", "x\r\n")), Recorded(Disconnect("a", "half"))
    assert got(held(peer(), *steps)) == ["x?\r\n", "<EOF>"]


def test_cas_numbers_answered_before_are_sent(peer: Callable[..., Peer]) -> None:
    numbers = {"gets k": "4711", "gets l": "4712"}
    target = peer(
        lambda line: [f"VALUE k 0 1 {numbers[line.strip()]}\r\n1\r\nEND\r\n"] if line.strip() in numbers else ["OK\r\n"]
    )
    cas = [Recorded(request("b", ["cas k 0 0 1 ", {"cas": n}, "\r\n"])) for n in (2, 1, 3)]
    held(
        target,
        Recorded(request("a", "gets k\r\n")),
        Recorded(request("a", "gets k\r\n")),
        Recorded(request("a", "gets l\r\n")),
        *cas,
    )
    assert [line for line in target.heard if line.startswith("cas")] == [
        "cas k 0 0 1 4712\r\n",
        "cas k 0 0 1 4711\r\n",
        "cas k 0 0 1 0\r\n",
    ]


def test_a_crowd_counts_answers(peer: Callable[..., Peer]) -> None:
    target = peer(lambda line: [f"VALUE {line.strip()} {int(line[1:]) % 2} 1\r\n7\r\nEND\r\n"])
    played = held(
        target,
        Recorded(Crowd(5, "c", "k{i}\r\n")),
        Recorded(request("c3", "k1\r\n")),
        Recorded(Crowd(5, "c", close=True)),
    )
    assert got(played) == [
        {"VALUE k{i} 0 1\r\n7\r\nEND\r\n": 3, "VALUE k{i} 1 1\r\n7\r\nEND\r\n": 2},
        "VALUE k1 1 1\r\n7\r\nEND\r\n",
        None,
    ]


def test_rows_are_polled_watched_cut_and_masked(peer: Callable[..., Peer]) -> None:
    target = peer()
    target.results = {
        "SELECT 1": [{"rows": [[0]]}, {"rows": [[1]]}],
        "SELECT 2": [{"rows": [[1]]}, {"rows": [[1]]}, {"rows": [[2]]}],
        "SELECT 3": [{"rows": [["a", "xid=12 ver: 5.6"]]}],
    }
    poll = Recorded(Eventually(Sql("SELECT 1", ((1,),), on="s"), 5, 0.01))
    watch = Recorded(Watch("SELECT 2", "s", 0.2, 0.01))
    cut = Recorded(Sql("SELECT 3", on="s"), cols=(1,), mask=r"xid=(\d+)|ver: (.*)")
    assert got(held(target, poll, watch, cut)) == [
        {"rows": [[1]]},
        {"seen": [[[1]], [[2]]]},
        {"rows": [["xid=# ver: #"]]},
    ]
