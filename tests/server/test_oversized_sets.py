"""The setting oversized_set_removes: whether a set that is refused removes the old row."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.serving import ask, serving

SET = b"set AA 0 0 3\r\nold\r\n"
REFUSED = b"SERVER_ERROR object too large for cache"
TOO_WIDE = REFUSED + b": column c2 takes 1024 characters\r\n"


@pytest.mark.parametrize(("size", "refused"), [(1025, TOO_WIDE), (2000, REFUSED + b"\r\n")], ids=["column", "limit"])
@pytest.mark.parametrize(("removes", "left"), [("1", b"END\r\n"), ("0", b"VALUE AA 0 3\r\nold\r\nEND\r\n")])
def test_the_setting_decides(tmp_path: Path, removes: str, left: bytes, size: int, refused: bytes) -> None:
    limits = ("--set", "item_size_max=1500", "--set", f"oversized_set_removes={removes}")
    with serving(tmp_path / "s.sqlite", *limits) as served, served.connect() as client:
        assert ask(client, SET) == b"STORED\r\n"
        assert ask(client, b"set AA 0 0 %d\r\n%b\r\n" % (size, b"v" * size)) == refused
        assert ask(client, b"get AA\r\n") == left
