"""The log line of a value that is longer than its column."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.serving import serving
from server.listeners.talk import frame, held

WIDE = b"v" * 1025
SET = 0x01


@pytest.mark.live
@pytest.mark.parametrize(
    "message",
    [
        b"set AA 0 0 1025\r\n" + WIDE + b"\r\n",
        b"set AA 0 0 1025 noreply\r\n" + WIDE + b"\r\n",
        frame(SET, b"AA", WIDE, bytes(8)),
    ],
    ids=["text", "noreply", "binary"],
)
def test_it_names_the_client_the_column_and_the_width(tmp_path: Path, message: bytes) -> None:
    with serving(tmp_path / "x.sqlite") as served:
        held(served.port, [message * 2])
        line = served.wait_for("refused a value")
        assert "from 127.0.0.1: object too large for cache: column c2 takes 1024 characters" in line
        held(served.port, [message, b"get AA\r\n" if message[:1] == b"s" else frame(0x00, b"AA")])
        assert "".join(served.log).count("refused a value") == 1


@pytest.mark.live
def test_a_value_that_the_plugin_cuts_is_not_logged(tmp_path: Path) -> None:
    with serving(tmp_path / "x.sqlite", "--profile", "mysql-8.0") as served:
        assert held(served.port, [b"set AA 0 0 1025\r\n" + WIDE + b"\r\n"])[0] == b"STORED\r\n"
        assert "refused a value" not in "".join(served.log)
