"""The recorded verdicts: the page shows them, and clients are judged at night as recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.live import missing_skips

from kvref.cli import main
from kvref_conformance.clients import report
from kvref_conformance.clients.judge import FAILS, HOLDS, UNSUPPORTED
from kvref_conformance.clients.requirements import load
from kvref_conformance.clients.rows import OWN, judged_clients
from kvref_conformance.interop import kits
from kvref_conformance.interop.rows import Client
from kvref_testbed.targets import MissingError

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "client-verdicts.md"
RECORD = report.recorded()
# Whether a client recovers in time depends on the machine too.
STEADY = {each.id for each in load() if not each.recovers}


def test_the_page_shows_the_record() -> None:
    """Run `kvref conform-client --write docs/reference/client-verdicts.md` if this fails."""
    page = PAGE.read_text(encoding="utf-8")
    assert report.filled(page, RECORD) == page


@pytest.mark.parametrize("client", judged_clients().values(), ids=judged_clients())
def test_the_record_has_every_requirement_of_a_client(client: Client) -> None:
    verdicts = RECORD["clients"][client.id]["verdicts"]
    assert set(verdicts) == {each.id for each in load() if client.protocol in each.protocols}
    for verdict in verdicts.values():
        assert verdict["outcome"] in {HOLDS, FAILS, UNSUPPORTED, report.VARIES}
        if verdict["outcome"] == FAILS:
            assert verdict["why"]
            assert 1 <= len(verdict["steps"]) <= 10


def test_the_record_has_no_verdict_where_it_varies() -> None:
    assert report.marked(RECORD) == RECORD


def test_the_clients_of_kvref_fail_nothing() -> None:
    for name in OWN:
        assert {verdict["outcome"] for verdict in RECORD["clients"][name]["verdicts"].values()} == {HOLDS}


@pytest.mark.nightly
@pytest.mark.serial  # timeouts of the clients decide some verdicts
@pytest.mark.programs
@pytest.mark.parametrize("client", judged_clients().values(), ids=judged_clients())
def test_a_client_is_judged_as_recorded(client: Client, tmp_path: Path) -> None:
    with missing_skips():
        lack = "" if client.id in OWN else kits.load()[client.kit].missing()
        if lack:
            raise MissingError(lack)
    file = tmp_path / "verdicts.json"
    result = CliRunner().invoke(main, ["conform-client", client.id, "--json", str(file)])
    assert result.exit_code in {0, 1}, result.output
    found = report.parsed(file.read_text())["clients"][client.id]["verdicts"]
    recorded = RECORD["clients"][client.id]["verdicts"]
    compared = {key for key, each in recorded.items() if key in STEADY and each["outcome"] != report.VARIES}
    assert {key: found[key]["outcome"] for key in compared} == {key: recorded[key]["outcome"] for key in compared}
