"""`kvref bench quick`: it measures an endpoint that others use, and leaves it as it was."""

from __future__ import annotations

import io
import json
import signal
import socket
import subprocess
import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from helpers import points
from helpers.live import nightly, target_or_skip
from helpers.serving import serving
from rich.console import Console

from kvref.cli import main
from kvref_bench import quick, summary
from kvref_bench.errors import BenchError
from kvref_bench.load.work import Clock
from kvref_bench.peers import wire
from kvref_bench.runs import folder, gates
from kvref_bench.runs.records import Resource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.table import Table

MINE = (b"mine", b"1")


@contextmanager
def endpoint(kind: str, path: Path) -> Iterator[str]:
    """Run an endpoint that holds one item that the measurement does not own."""
    if kind == "kvref":
        with serving(path / "x.sqlite") as served:
            address = f"127.0.0.1:{served.port}"
            wire.add(address, [MINE], [])
            yield address
    else:
        with target_or_skip("memcached") as target:
            address = target.memcached()
            wire.add(address, [MINE], [])
            yield address


@contextmanager
def watched(address: str) -> Iterator[None]:
    """Assert that the block neither leaves nor removes items."""
    before = wire.stats(address)["curr_items"]
    yield
    assert wire.get(address, MINE[0]) == MINE[1]
    assert wire.stats(address)["curr_items"] == before


def shown(table: Table) -> str:
    text = io.StringIO()
    Console(file=text, width=200).print(table)
    return text.getvalue()


@pytest.mark.live
@pytest.mark.parametrize("kind", ["kvref", nightly("memcached")])
def test_it_measures_four_points_and_leaves_the_endpoint_as_it_was(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "CLOCK", Clock(0.1, 0.4))
    with endpoint(kind, tmp_path) as address, watched(address):
        done = CliRunner().invoke(main, ["bench", "quick", address, "--json", "--sessions", "2"])
        gets = int(wire.stats(address)["cmd_get"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    assert (found["kind"], found["endpoint"], found["sessions"], found["stopped"]) == (kind, address, 2, False)
    assert [(each["commands"], each["depth"]) for each in found["points"]] == [
        ("get", 1), ("get", 16), ("90 % get, 10 % set", 1), ("90 % get, 10 % set", 16),
    ]  # fmt: skip
    for each in found["points"]:
        latencies = list(each["latency_ms"].values())
        assert latencies == sorted(latencies)
        assert latencies[0] > 0
        assert each["valid"] == (not each["reasons"])
    assert gets >= sum(each["operations_per_second"] * 0.4 * 0.8 for each in found["points"]) > 0


def test_a_point_is_judged_as_in_a_run() -> None:
    busy = [
        Resource(moment * 10**9, gates.MACHINE, 0, user, 0.0, 0) for moment, user in ((0, 0.0), (1, 3.0))
    ]  # three cores in one second
    point = points.point(resources=busy)
    reasons = quick._described("get", point)["reasons"]
    assert reasons == gates.judge(point)
    assert any(each.startswith("other load: ") for each in reasons)


@pytest.mark.live
@pytest.mark.nightly
def test_ctrl_c_ends_it_and_the_items_are_deleted(tmp_path: Path) -> None:
    with endpoint("kvref", tmp_path) as address, watched(address):
        process = subprocess.Popen(
            [sys.executable, "-m", "kvref", "bench", "quick", address, "--sessions", "2"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no other thread runs here
        )
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("[1/"):
                break
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "op/s" in printed


@pytest.mark.live
@pytest.mark.nightly
def test_an_endpoint_that_takes_no_items_is_named_with_its_reply(tmp_path: Path) -> None:
    (tmp_path / "kvref.toml").write_text('[[listener]]\naddress = "127.0.0.1:0"\nread_only = true\n')
    with serving(tmp_path / "x.sqlite", "--config", str(tmp_path / "kvref.toml"), listen=None) as served:
        done = CliRunner().invoke(main, ["bench", "quick", f"127.0.0.1:{served.port}"])
    assert done.exit_code == 2
    assert "CLIENT_ERROR this listener is read-only" in done.output


def test_an_address_without_a_server_is_named() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    done = CliRunner().invoke(main, ["bench", "quick", f"127.0.0.1:{port}"])
    assert done.exit_code == 2
    assert f"127.0.0.1:{port}" in done.output


@pytest.mark.live
@pytest.mark.nightly
def test_rows_of_others_are_not_overwritten_and_not_deleted(tmp_path: Path) -> None:
    with endpoint("kvref", tmp_path) as address:
        added: list[bytes] = []
        with pytest.raises(BenchError, match="add mine"):
            wire.add(address, [(b"k1", b"1"), MINE, (b"k2", b"2")], added)
        assert added == [b"k1", b"k2"]
        wire.delete(address, [*added, b"gone"])
        assert wire.get(address, b"k1") is None
        assert wire.get(address, MINE[0]) == MINE[1]


def test_the_figures_of_a_point_that_is_not_valid_are_in_parentheses() -> None:
    latencies = dict.fromkeys(quick.PERCENTILES, 1.0)
    both = [
        {"commands": "get", "depth": 1, "operations_per_second": 1000.0, "valid": True, "reasons": []},
        {"commands": "get", "depth": 16, "operations_per_second": 2000.0, "valid": False, "reasons": ["hit rate: 3 %"]},
    ]
    points = [{**each, "latency_ms": latencies} for each in both]
    table = quick.table({"endpoint": "h:1", "version": "1", "sessions": 8, "points": points})
    good, bad = (line for line in shown(table).splitlines() if line.startswith("│ get"))
    assert " 1,000 " in good
    assert "yes" in good
    for words in ("(2,000)", "(1.000)", "NOT VALID", "hit rate: 3 %"):
        assert words in bad
    assert [row.style for row in table.rows] == ["", "dim"]


def test_the_table_of_a_run_marks_what_is_not_valid(tmp_path: Path) -> None:
    wrong = points.point(points.result(errors=1), series="wrong")
    table = summary.table(folder.read(points.run(tmp_path / "run", points.point(), wrong)))
    good, bad = (line for line in shown(table).splitlines() if line.startswith(("│ get", "│ wrong")))
    assert "1 of 1" in good
    assert "(" not in good
    assert "NOT VALID" in bad
    assert "(500)" in bad
    assert [row.style for row in table.rows] == ["", "dim"]
