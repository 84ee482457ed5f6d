"""What a typed line becomes on the wire, and how bytes are shown."""

from __future__ import annotations

import socket
import threading

import pytest

from kvref.client.converse import Conversation, shown, typed


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        ("get a", b"get a\r\n"), ("", b"\r\n"), (r"set k 0 0 1\r\nx", b"set k 0 0 1\r\nx\r\n"), (r"a\x00\xFFb", b"a\x00\xffb\r\n"),
        (r"a\\rb", b"a\\rb\r\n"), (r"a\qb", b"a\\qb\r\n"), ("é", b"\xc3\xa9\r\n"), (r"tab\there\0", b"tab\there\x00\r\n"),
    ],
)  # fmt: skip
def test_typed(line: str, sent: bytes) -> None:
    assert typed(line) == sent


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []), (b"END\r\n", [r"END\r\n"]), (b"a\r\nb", [r"a\r\n", "b"]), (b"\x00\xff\\\t\n", [r"\x00\xff\\\t\n"]),
        (b"\r\n\r\n", [r"\r\n", r"\r\n"]), (b"a\rb\x0cc\n", [r"a\rb\x0cc\n"]),
    ],
)  # fmt: skip
def test_shown(data: bytes, lines: list[str]) -> None:
    assert shown(data) == lines


def test_an_endpoint_that_closes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            client, _ = server.accept()
            with client:
                client.recv(100)
                client.sendall(b"bye\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with Conversation("127.0.0.1", server.getsockname()[1]) as conversation:
            assert conversation.say(b"quit\r\n") == b"bye\r\n"
            assert conversation.closed
        thread.join()
