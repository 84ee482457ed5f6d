"""Each verdict, of real runs against servers that break just so: `faulty_server.py` and native memcached."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.faulty import Kvref, judged, serving, stop_restarted, words
from helpers.live import target_or_skip

from kvref.specification import requirements
from kvref_conformance.judging.verdict import FAILS, FLAKY, HANG, HOLDS, NON_STRICT, QUIRK, at_level

pytestmark = pytest.mark.nightly


def test_levels() -> None:
    catalogue = requirements.load()
    must = next(each for each in catalogue.values() if each.level == "MUST")
    should = next(each for each in catalogue.values() if each.level == "SHOULD")
    quirk = next(each for each in catalogue.values() if each.level == "QUIRK")
    assert at_level(HOLDS, [must], "must") == HOLDS
    assert at_level(HOLDS, [quirk], "must") == QUIRK
    assert at_level(HOLDS, [quirk, must], "must") == HOLDS
    for demand, counts in (("must", [must]), ("should", [must, should]), ("quirk", [must, should, quirk])):
        for each in (must, should, quirk):
            wanted = FAILS if each in counts else NON_STRICT
            assert at_level(FAILS, [each], demand) == wanted, (each.level, demand)
    assert at_level(FLAKY, [quirk], "must") == NON_STRICT
    assert at_level(HANG, [quirk], "must") == HANG


def test_fails_is_deterministic_and_can_be_replayed(in_folder: Kvref, tmp_path: Path) -> None:
    with serving("wrong") as (address, _):
        done = in_folder(address, "--only", "append-missing", "--only", "set-new")
        assert done.returncode == 1, done.stdout
        assert words(tmp_path) == {"set-new": "holds", "append-missing": "fails"}
        assert judged(tmp_path)["append-missing"]["repeated"] == "deterministic (5/5)"
        assert f"again: kvref replay out/replays/append-missing.json {address}" in done.stdout
        again = in_folder("out/replays/append-missing.json", address, command="replay")
        assert again.returncode == 1, again.stderr
        assert "expected: END\\r\\n" in again.stdout
        file = tmp_path / "out" / "replays" / "append-missing.json"
        (tmp_path / "as-other.json").write_text(
            file.read_text().replace('"profile": "memcached"', '"profile": "mysql-8.0"')
        )
        assert "as mysql-8.0: 1 fails" in in_folder("as-other.json", address, command="replay").stdout
        last = in_folder(address, "--last-failed")
        assert last.returncode == 1
        assert words(tmp_path) == {"append-missing": "fails"}
    with serving() as (address, _):
        healed = in_folder("out/replays/append-missing.json", address, command="replay")
        assert healed.returncode == 0, healed.stdout
        assert "1 holds" in healed.stdout
        assert in_folder(address, "--last-failed").returncode == 0
        nothing = in_folder(address, "--last-failed")
        assert nothing.returncode == 2
        assert "no failure in the report out" in nothing.stderr


def test_hangs_end_a_chapter_and_the_run_says_what_was_not_run(in_folder: Kvref, tmp_path: Path) -> None:
    with serving("hang") as (address, _):
        done = in_folder(address, "--only", "prepend-*", "--only", "get-*", "--repeat", "0", "--max-hangs", "1")
        assert done.returncode == 1, done.stdout
        found = judged(tmp_path)
        rest = [line for line in found.values() if line["reason"].startswith("1 cases of the chapter storage hung")]
        assert [line["verdict"] for line in found.values()].count("hang") == 1
        assert rest
        assert {line["verdict"] for line in rest} == {"not-run"}
        assert f"{len(rest)} not-run: 1 cases of the chapter storage hung" in done.stdout
        limited = in_folder(address, "--only", "get-*", "--time-limit", "0.001")
        assert limited.returncode == 2, limited.stdout
        assert "not-run: the time limit of the run of 0.001 s is reached" in limited.stdout


def test_a_run_ends_after_max_failures(in_folder: Kvref, tmp_path: Path) -> None:
    with serving("wrong") as (address, _):
        done = in_folder(address, "--only", "append-missing", "--only", "prepend-missing", "--only", "set-new",
                         "--only", "incr-missing", "--max-failures", "1", "--repeat", "0")  # fmt: skip
    assert done.returncode == 1, done.stdout
    found = words(tmp_path)
    assert list(found.values()).count("fails") == 1
    rest = [name for name, word in found.items() if word == "not-run"]
    assert rest
    assert f"{len(rest)} not-run: 1 cases failed: --max-failures 0 runs all" in done.stdout


def test_a_crash_is_a_verdict_and_the_run_goes_on(in_folder: Kvref, tmp_path: Path) -> None:
    with serving("crash") as (address, again):
        try:
            done = in_folder(address, "--restart", again, "--only", "append-missing", "--only", "replace-missing",
                           "--only", "set-new", "--only", "prepend-missing", "--repeat", "2")  # fmt: skip
            assert done.returncode == 1, done.stdout
            assert words(tmp_path) == {
                "set-new": "holds", "replace-missing": "holds", "append-missing": "crash", "prepend-missing": "holds",
            }  # fmt: skip
            line = judged(tmp_path)["append-missing"]
            assert line["repeated"] == "deterministic (2/2)"
            assert "the endpoint was gone afterwards; it came back after" in line["text"]
            assert line["conversation"][-1]["sent"].startswith("append ")
            assert "by hand: printf 'append " in line["text"]
        finally:
            stop_restarted(tmp_path)


def test_without_a_restart_the_rest_is_not_run(in_folder: Kvref, tmp_path: Path) -> None:
    with serving("crash") as (address, _):
        done = in_folder(address, "--only", "append-missing", "--only", "set-new", "--only", "prepend-missing")
        assert done.returncode == 1
        assert words(tmp_path) == {"set-new": "holds", "append-missing": "crash", "prepend-missing": "not-run"}
        reason = judged(tmp_path)["prepend-missing"]["reason"]
        assert reason.startswith("the endpoint ended in case append-missing and did not come back")
        assert reason.endswith("with --restart COMMAND the run would continue")


def test_a_server_that_something_else_starts_again_has_crashed(in_folder: Kvref, tmp_path: Path) -> None:
    """It answers again at once, in another process."""
    with serving("crash", watched=True) as (address, _):
        done = in_folder(address, "--only", "append-missing", "--only", "set-new", "--only", "prepend-missing")
        assert done.returncode == 1
        assert words(tmp_path) == {"set-new": "holds", "append-missing": "crash", "prepend-missing": "holds"}
        assert judged(tmp_path)["append-missing"]["repeated"] == "deterministic (5/5)"


def test_a_hang_is_a_verdict(in_folder: Kvref, tmp_path: Path) -> None:
    with serving("hang") as (address, _):
        done = in_folder(address, "--only", "prepend-missing", "--only", "set-new")
        assert done.returncode == 1
        assert words(tmp_path) == {"set-new": "holds", "prepend-missing": "hang"}
        line = judged(tmp_path)["prepend-missing"]
        assert line["repeated"].startswith("deterministic (")
        assert line["conversation"][-1]["note"] == "hang: no complete reply within 5 s"


def test_what_is_only_slow_is_called_timing(in_folder: Kvref, tmp_path: Path) -> None:
    with serving("slow") as (address, _):
        done = in_folder(address, "--only", "replace-missing", "--repeat", "1")
        assert done.returncode == 1
        line = judged(tmp_path)["replace-missing"]
        assert (line["verdict"], line["repeated"]) == ("hang", "timing: kept with waits 10 times as long (1/1)")


def test_flaky_is_a_verdict(in_folder: Kvref, tmp_path: Path) -> None:
    with serving("flaky") as (address, _):
        done = in_folder(address, "--only", "add-new")
        assert done.returncode == 1
        line = judged(tmp_path)["add-new"]
        assert (line["verdict"], line["repeated"]) == ("flaky", "flaky 2/5")


@pytest.mark.live
def test_a_quirk_counts_where_it_is_demanded(in_folder: Kvref, tmp_path: Path) -> None:
    """Native memcached, judged as the plugin, breaks a quirk of it: a failure only where quirks are demanded."""
    with target_or_skip("memcached") as target:
        only = ("--profile", "mysql-8.0", "--only", "stats-without-rows", "--only", "set-new")
        for level, code, word in (("must", 0, "non-strict"), ("should", 0, "non-strict"), ("quirk", 1, "fails")):
            assert in_folder(target.address, *only, "--level", level).returncode == code
            assert words(tmp_path) == {"set-new": "holds", "stats-without-rows": word}
