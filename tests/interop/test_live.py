"""`kvref interop` for real: a script runs at a live memcached, and a cell unlike the record fails the command."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from helpers.live import missing_skips

from kvref.cli import main
from kvref_conformance.interop import kits, matrix
from kvref_conformance.interop.play import WRONG, Cell
from kvref_testbed.targets import MissingError

if TYPE_CHECKING:
    from pathlib import Path

ONE = ["interop", "--client", "tools-text", "--target", "memcached"]


@pytest.fixture(autouse=True)
def _tools() -> None:
    with missing_skips():
        lack = kits.load()["tools"].missing()
        if lack:
            raise MissingError(lack)


@pytest.mark.live
def test_a_client_at_an_endpoint_is_as_recorded(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    result = CliRunner().invoke(main, [*ONE, "--json", str(file)])
    assert result.exit_code == 0, result.output
    assert "14 cells of 1 clients" in result.output
    assert list(matrix.parse(file.read_text()).played) == ["tools-text"]


@pytest.mark.live
def test_a_cell_unlike_the_record_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    record = matrix.recorded()
    played = record.played["tools-text"]["memcached"]
    other = replace(played, cells=played.cells | {"get": Cell(WRONG, "so it was")})
    changed = replace(record, played=record.played | {"tools-text": {"memcached": other}})
    monkeypatch.setattr(matrix, "recorded", lambda: changed)
    result = CliRunner().invoke(main, ONE)
    assert result.exit_code == 1
    assert "tools-text, memcached, get: works  (recorded: wrong so it was)" in result.output
