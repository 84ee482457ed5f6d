"""The table of client libraries in the documentation: it equals the record, with reasons for wrong cells."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kvref.errors import SuiteError
from kvref.protocol.command_table import TABLE
from kvref_conformance.interop import kits, matrix
from kvref_conformance.interop.matrix import ENDPOINTS, Matrix, Note
from kvref_conformance.interop.play import CANNOT, NOT_RUN, WORKS, WRONG, Cell, Played
from kvref_conformance.interop.rows import Client, clients, features

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "client-libraries.md"
RECORD = matrix.recorded()


def full() -> Matrix:
    played = {
        client: {endpoint: Played("1.0", "Perl 5", dict.fromkeys(features(), Cell(WORKS))) for endpoint in ENDPOINTS}
        for client in clients()
    }
    return Matrix("2026-01-01", dict.fromkeys(ENDPOINTS, "1"), played, {"twemproxy": "0.5"})


def but(one: Matrix, client: str, endpoint: str, feature: str, cell: Cell) -> Matrix:
    before = one.played[client][endpoint]
    after = replace(before, cells=before.cells | {feature: cell})
    return replace(one, played=one.played | {client: one.played[client] | {endpoint: after}})


def test_readme_says_what_is_recorded() -> None:
    """Run `kvref interop --write docs/reference/client-libraries.md` when this fails; the table and its record are written by nothing else."""
    page = PAGE.read_text(encoding="utf-8")
    assert matrix.filled(page, RECORD, matrix.notes()) == page


def test_the_record_is_of_every_client_endpoint_and_feature() -> None:
    assert set(RECORD.played) == set(clients())
    for by_endpoint in RECORD.played.values():
        assert set(by_endpoint) == set(ENDPOINTS)
        for played in by_endpoint.values():
            assert set(played.cells) == set(features())
            assert played.version
            assert all(cell.outcome in {WORKS, WRONG, CANNOT} for cell in played.cells.values())


def test_clients_call_every_command_on_items() -> None:
    called = {verb for feature in features().values() for verb in feature.verbs}
    on_items = {verb.decode() for row in TABLE if row.policies for verb in row.text}
    assert called - on_items == {"bind"}
    # No library calls bget, few call gats, and the others of a run would lose their keys to flush_all.
    assert on_items - called == {"bget", "gats", "flush_all"}


def test_every_wrong_cell_has_a_note_and_every_note_a_wrong_cell() -> None:
    assert matrix.unexplained(RECORD, matrix.notes()) == []


def test_kvref_is_wrong_only_where_the_client_is_wrong_with_memcached_too() -> None:
    wrong = {
        (client, feature)
        for client, by_endpoint in RECORD.played.items()
        for feature, cell in by_endpoint["kvref-sqlite"].cells.items()
        if cell.outcome == WRONG
    }
    assert all(RECORD.played[client]["memcached"].cells[feature].outcome == WRONG for client, feature in wrong)


def test_what_is_written_is_read_again() -> None:
    one = but(full(), "pymemcache", "memcached", "get", Cell(WRONG, '["ü"]'))
    assert matrix.parse(one.as_json()) == one


def test_a_cell_that_is_otherwise_is_named() -> None:
    was = but(full(), "pymemcache", "memcached", "get", Cell(WRONG, "a"))
    assert matrix.differences(but(full(), "pymemcache", "memcached", "get", Cell(WRONG, "b")), was) == []
    assert matrix.differences(full(), was) == ["pymemcache, memcached, get: works  (recorded: wrong a)"]
    (line,) = matrix.differences(but(was, "aiomcache", "memcached", "cas", Cell(NOT_RUN, "no tool")), was)
    assert line == "aiomcache, memcached, cas: not run no tool (recorded: works)"


def test_a_wrong_cell_without_a_note_and_an_idle_note_are_named() -> None:
    note = Note(("pylibmc-*",), ("*",), ("get", "cas"), "why")
    one = but(full(), "pymemcache", "memcached", "get", Cell(WRONG, "x"))
    assert matrix.unexplained(one, [note]) == ["pymemcache, memcached, get", "idle note: why"]
    other = but(full(), "pylibmc-text", "memcached", "cas", Cell(WRONG, "x"))
    assert matrix.unexplained(other, [note]) == []
    assert "| pylibmc, text | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ ✓ ✗¹ | ✓ |" in matrix.table(other, [note])


def test_a_page_is_filled_again_and_again() -> None:
    filled = matrix.filled("before\n" + "old\n".join(matrix.MARKS) + "after\n", full(), [])
    assert "old" not in filled
    assert "Perl 5: pymemcache 1.0" in filled
    assert matrix.filled(filled, full(), []) == filled
    with pytest.raises(SuiteError, match="the page has no lines"):
        matrix.filled("nothing", full(), [])


def test_ci_installs_what_the_kits_need() -> None:
    script = (ROOT / ".ci" / "part").read_text()
    for kit in kits.load().values():
        for package in {*kit.row.get("tools", {}).values(), *kit.row.get("packages", ())} - {"apt", "dpkg"}:
            assert re.search(rf"(?<![\w-]){re.escape(package)}(?![\w-])", script), package


@pytest.mark.parametrize("client", clients().values(), ids=clients())
def test_a_client_has_its_script_and_its_kit(client: Client) -> None:
    assert client.path.is_file()
    assert client.kit in kits.load()
