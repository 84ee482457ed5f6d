"""State other than rows: the client that recaches a value, and the listener of metrics."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.serving import serving
from server.listeners.talk import frame
from server.listeners.test_rights import ALL, READING, listening, say

pytestmark = pytest.mark.live


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_reader_is_not_instructed_to_make_a_value_anew(tmp_path: Path, workers: str) -> None:
    with listening(tmp_path, "--workers", workers) as (_, found):
        say(found[ALL], b"ms stale 1\r\n1\r\nmd stale I\r\nms old 1 T20\r\n1\r\n")
        assert say(found[READING], b"mg stale v\r\nmg old R30 v\r\n") == b"VA 1 X\r\n1\r\nVA 1\r\n1\r\n"
        requests = b"mg stale v\r\nmg old R30 v\r\n"
        assert say(found[ALL], requests) == b"VA 1 X W\r\n1\r\nVA 1 W\r\n1\r\n"
        assert say(found[READING], requests) == b"VA 1 Z X\r\n1\r\nVA 1 Z\r\n1\r\n"


def test_a_reader_changes_nothing_that_all_see(tmp_path: Path) -> None:
    refused = b"CLIENT_ERROR this listener is read-only\r\n"
    states, revived = b"stats vbucket\r\n", frame(0x83, b"7", b"active")
    with listening(tmp_path) as (_, found):
        say(found[ALL], b"get AA\r\n")
        assert (
            say(found[READING], b"stats reset\r\nstats detail on\r\nstats detail off\r\nverbosity 1\r\n") == refused * 4
        )
        before = say(found[READING], states)
        for setting in (revived, frame(0x85, b"0")):
            assert b"read-only" in say(found[READING], setting)
        assert say(found[ALL], states) == before
        assert b"STAT get_hits 1\r\n" in say(found[READING], b"stats\r\n")
        say(found[ALL], revived)
        assert say(found[READING], states) != before


@pytest.mark.parametrize(("address", "warned"), [("0.0.0.0:0", True), ("[::]:0", True), ("127.0.0.1:0", False)])
def test_metrics_that_others_reach(tmp_path: Path, address: str, warned: bool) -> None:
    with serving(tmp_path / "x.sqlite", "--metrics", address) as served:
        assert ("are reachable from other hosts without authentication" in "".join(served.log)) is warned
