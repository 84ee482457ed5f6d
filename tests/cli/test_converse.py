"""What a typed line becomes on the wire, and how bytes are shown."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from kvref.cli import main
from kvref.cli.probe import Conversation, escaped, unescaped


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        ("get a", b"get a\r\n"), ("", b"\r\n"), (r"set k 0 0 1\r\nx", b"set k 0 0 1\r\nx\r\n"), (r"a\x00\xFFb", b"a\x00\xffb\r\n"),
        (r"a\\rb", b"a\\rb\r\n"), (r"a\qb", b"a\\qb\r\n"), ("é", b"\xc3\xa9\r\n"), (r"tab\there\0", b"tab\there\x00\r\n"),
    ],
)  # fmt: skip
def test_typed(line: str, sent: bytes) -> None:
    assert unescaped(line) == sent


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []), (b"END\r\n", [r"END\r\n"]), (b"a\r\nb", [r"a\r\n", "b"]), (b"\x00\xff\\\t\n", [r"\x00\xff\\\t\n"]),
        (b"\r\n\r\n", [r"\r\n", r"\r\n"]), (b"a\rb\x0cc\n", [r"a\rb\x0cc\n"]),
    ],
)  # fmt: skip
def test_shown(data: bytes, lines: list[str]) -> None:
    assert escaped(data) == lines


def test_an_endpoint_that_closes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            client, _ = server.accept()
            with client:
                client.recv(100)
                client.sendall(b"bye\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with Conversation(server.getsockname()) as conversation:
            assert conversation.exchange(b"quit\r\n") == b"bye\r\n"
            assert conversation.closed
        thread.join()


@pytest.fixture
def endless() -> Iterator[int]:
    """Return the port of an endpoint that answers without end."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def flood() -> None:
            client, _ = server.accept()
            with client, contextlib.suppress(OSError):  # closed by the other side, which is what is tested
                while True:
                    client.sendall(b"x" * 4096)

        thread = threading.Thread(target=flood)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def test_an_answer_has_a_limit_in_bytes(endless: int) -> None:
    with Conversation(("127.0.0.1", endless), max_bytes=10_000) as conversation:
        assert conversation.exchange(b"get a\r\n") == b"x" * 10_000
        assert (conversation.closed, conversation.stopped) == (True, "more than 10000 bytes came")


def test_an_answer_has_a_limit_in_seconds(endless: int) -> None:
    with Conversation(("127.0.0.1", endless), max_bytes=1 << 30, max_seconds=0.05) as conversation:
        conversation.exchange(b"get a\r\n")
        assert conversation.stopped == "the answer did not end within 0.05 s"


def test_probe_reports_an_answer_without_end(endless: int) -> None:
    done = CliRunner().invoke(main, ["probe", f"127.0.0.1:{endless}", "--max-bytes", "100"], input="get a\n")
    assert done.exit_code == 2
    assert done.output.splitlines()[1] == f"< {'x' * 100}"
    assert f"Error: 127.0.0.1:{endless}: more than 100 bytes came" in done.output
