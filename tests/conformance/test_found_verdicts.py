"""What generated conversations find on servers that break just so, and on real ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.faulty import Kvref, judged, serving, stop_restarted
from helpers.live import nightly, target_or_skip

from kvref_testbed import targets
from kvref_testbed.mutants import CONTROL
from kvref_testbed.targets.kvref_server import KvrefSQLite


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "requirement", "drawn"),
    [
        ("forgets_the_fourth_part", "KV-SEQ-002", "any-table"),
        ("forgets_the_switch_of_a_silent_store", "KV-SEQ-001", "any-order-of-commands"),
    ],
)
def test_what_is_generated_over_sql_can_be_replayed(
    in_folder: Kvref, tmp_path: Path, name: str, requirement: str, drawn: str
) -> None:
    """A server with one rule broken fails again by the file, on tables of another run; the whole one holds."""
    for mutant, code in ((name, 1), (CONTROL, 0)):
        with targets.booted(KvrefSQLite(mutant, program=("kvref_testbed.mutants", mutant))) as instance:
            address, store = instance.target.memcached(), instance.target.store
            assert store is not None
            behind = ("--sql", store, "--reload", f"kill -HUP {instance.target.pid}")
            if code:
                done = in_folder(address, *behind, "--only", requirement, "--examples", "240")
                assert done.returncode == 1, done.stdout
                assert judged(tmp_path)[drawn]["repeated"] == "deterministic (5/5)"
            again = in_folder(f"out/replays/{drawn}.json", address, *behind, command="replay")
            assert again.returncode == code, again.stdout


@pytest.mark.nightly
def test_a_generated_conversation_finds_a_crash(in_folder: Kvref, tmp_path: Path) -> None:
    """The machine ends the server, is given another each time, and shows what does it."""
    with serving("crash") as (address, again):
        try:
            done = in_folder(address, "--restart", again, "--only", "KV-SEQ-001", "--examples", "15", "--repeat", "1")
            assert done.returncode == 1, done.stdout
            line = judged(tmp_path)["any-order-of-commands"]
            assert (line["verdict"], line["repeated"]) == ("crash", "deterministic (1/1)")
            # How short it gets is a matter of how fast the server comes back.
            assert line["conversation"][-1]["sent"].startswith("append ")
            assert not any(each["sent"].startswith("append ") for each in line["conversation"][:-1])
        finally:
            stop_restarted(tmp_path)


@pytest.mark.nightly
def test_a_generated_case_goes_on_after_what_it_found(in_folder: Kvref, tmp_path: Path) -> None:
    with serving("wrong", "flaky") as (address, _):
        assert in_folder(address, "--only", "KV-SEQ-001", "--examples", "30").returncode == 1
        found = {case: line for case, line in judged(tmp_path).items() if case.startswith("any-order-of-commands")}
        requests = {line["conversation"][-1]["sent"].split(" ")[0] for line in found.values()}
        assert {"get", "add"} <= requests, requests
        assert list(found)[1] == "any-order-of-commands~2"
        assert len({(line["conversation"][-1]["got"], len(line["conversation"])) for line in found.values()}) > 1
        # A get fails each time; whether an add does depends on how many came before it.
        fails = next(case for case, line in found.items() if line["conversation"][-1]["sent"].startswith("get "))
        again = in_folder(f"out/replays/{fails}.json", address, command="replay")
        assert again.returncode == 1, again.stdout


@pytest.mark.live
@pytest.mark.parametrize("name", ["memcached", nightly("twemproxy-memcached")])
def test_any_arguments(in_folder: Kvref, tmp_path: Path, name: str) -> None:
    """Memcached holds; twemproxy in front of it closes the connection where memcached says what is wrong."""
    with target_or_skip(name) as target:
        done = in_folder(target.address, "--only", "KV-SEQ-005", "--examples", "150", "--seed", "3")
        found = judged(tmp_path)
        if name == "memcached":
            assert list(found) == ["any-arguments"]
            line = found["any-arguments"]
            # On a busy machine memcached 1.6.18 has lost an incr with noreply behind a set, and in no repetition again.
            lost = (
                line["verdict"] == "flaky"
                and line["repeated"] == "flaky 0/5"
                and "incr " in line["conversation"][-2]["sent"]
            )
            assert (done.returncode, line["verdict"]) == (0, "holds") or lost, line
            return
        assert done.returncode == 1
        notes = {line["conversation"][-1]["note"] for line in found.values()}
        assert notes == {"the endpoint closed the connection"}
        assert {line["repeated"] for line in found.values()} == {"deterministic (5/5)"}


@pytest.mark.parametrize("requirement", ["KV-SEQ-001", nightly("KV-SEQ-005")])
def test_an_endpoint_that_stays_away_is_one_crash(in_folder: Kvref, tmp_path: Path, requirement: str) -> None:
    """Without a restart a generated case ends with the conversation that ended the endpoint."""
    with serving("crash") as (address, _):
        assert in_folder(address, "--only", requirement, "--examples", "150").returncode == 1
        (line,) = (line for line in judged(tmp_path).values() if line["verdict"] == "crash")
        assert "append " in line["conversation"][-1]["sent"]
