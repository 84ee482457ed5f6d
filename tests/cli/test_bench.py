"""`kvref bench` as a user types it: bad usage before anything boots, JSON, Ctrl-C, and a server that is gone."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from helpers.live import target_or_skip
from helpers.waiting import until_risen

from kvref.cli import main
from kvref_bench import scenario
from kvref_bench.peers import wire
from kvref_bench.runs import folder

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-m", "kvref", "bench"]
QUICK = ["--set=sessions=1", "--set=repetitions=1", "--set=measure=0.3", "--set=warmup=0", "--set=table.keys.count=100"]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)


def started(*arguments: str) -> subprocess.Popen[str]:
    # A run started in the background inherits an ignored SIGINT; a person's Ctrl-C meets the default.
    interruptible = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(
        [*COMMAND, "run", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=interruptible,  # noqa: PLW1509 - no other thread runs here
    )


def read_to(process: subprocess.Popen[str], text: str, address: str) -> None:
    """Read what is said until a line has a text, and wait until the server of the run answers more gets after it."""
    assert process.stderr is not None
    assert any(text in line for line in process.stderr), "the run ended before"
    until_risen(lambda: [int(wire.stats(address)["cmd_get"])], 5000)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "no-such"], "no scenario 'no-such': choose one of binlog-batch, "),
        (["run", "ro-1m-int"], "no server to measure"),
        (["run", "ro-1m-int", "--scale", "huge"], "'huge' is not one of 'small', 'laptop', 'full'"),
        (["run", "ro-1m-int", "--set", "session=1", "--target", "memcached"], "session"),
        (["run", "ro-1m-int", "--target", "memcache"], "unknown target 'memcache', did you mean 'memcached': choose one of mysql-8.0-plugin, "),
        (["run", "ro-1m-int", "--endpoint", "localhost"], "write HOST:PORT"),
        (["run", "ro-1m-int", "--target", "memcached", "--report", "nowhere"], "nowhere: No such file or directory: give report.jsonl of"),
        (["run", "ro-1m-int", "--target", "memcached", "--control-host", "h"], "--control-host applies only to workers of a cluster"),
        (["show", "no-such"], "scenario 'no-such'"),
    ],
)  # fmt: skip
def test_bad_usage_is_reported_before_anything_boots(arguments: list[str], text: str, tmp_path: Path) -> None:
    out = [f"--out={tmp_path / 'runs'}"] if arguments[0] == "run" else []
    done = CliRunner().invoke(main, ["bench", *arguments, *out])
    assert done.exit_code == 2
    assert text in done.output
    assert not list(tmp_path.iterdir())


def test_list_names_every_scenario_and_show_resolves_one() -> None:
    listed = json.loads(CliRunner().invoke(main, ["bench", "list", "--json"]).output)
    assert [each["name"] for each in listed] == list(scenario.names())
    for each in listed:
        assert each["question"].endswith("?")
        assert each["source"]
        assert 0 < each["seconds"]["small"] < each["seconds"]["full"]
    lines = CliRunner().invoke(main, ["bench", "list"]).output.splitlines()
    assert [line.partition(":")[0] for line in lines if not line.startswith(" ")] == list(scenario.names())
    words = ["bench", "show", "ro-1m-int", "--scale", "small", "--set", "sessions=3"]
    shown = json.loads(CliRunner().invoke(main, words).output)
    assert shown["sessions"] == [3]
    assert shown["scale"] == "small"


def test_an_endpoint_that_holds_items_is_measured_only_if_the_user_allows_it(tmp_path: Path) -> None:
    words = ["run", "random-user-capacity", "--scale=small", *QUICK, f"--out={tmp_path}", "--json", "--endpoint"]
    with target_or_skip("memcached") as target:
        address = f"ours={target.memcached()}"
        with socket.create_connection((target.host, target.port)) as link, link.makefile("rb") as replies:
            link.sendall(b"set mine 0 0 1\r\n1\r\n")
            assert replies.readline() == b"STORED\r\n"
            refused = bench(*words, address)
            assert refused.returncode == 2
            assert "the endpoint holds 1 items, and flush_all would delete them" in refused.stderr
            assert not list(tmp_path.iterdir())
            link.sendall(b"get mine\r\n")
            assert replies.readline() == b"VALUE mine 0 1\r\n"
        done = bench(*words, address, "--allow-destructive")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["stopped"] is None
    [server] = found["servers"]
    assert server["judged"].startswith("no conformance report")
    assert {row["server"] for row in found["rows"]} == {"ours"}
    assert all(row["qps"] > 0 and row["p50"] > 0 for row in found["rows"])
    run = folder.read(found["folder"])
    assert run.id == found["run_id"]
    assert [line for line in done.stderr.splitlines() if line.startswith("[1/")]


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    with target_or_skip("memcached") as target:
        process = started(
            "random-user-capacity",
            "--scale=small",
            "--endpoint",
            target.memcached(),
            "--set=measure=2",
            f"--out={tmp_path}",
        )
        read_to(process, "[1/", target.address)
        process.send_signal(signal.SIGINT)
        reply, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    [made] = tmp_path.iterdir()
    run = folder.read(made)
    assert run.info["finished"]
    assert run.info["stopped"] == "stopped by the user"
    valid = run.points["invalid_reason"].str.contains("stopped by the user").tolist()
    # On a busy machine the second point has not begun.
    assert valid in ([False], [False, True])
    assert str(made.name) in reply


@pytest.mark.nightly
def test_ctrl_c_twice_ends_at_once_and_what_is_written_can_be_read(tmp_path: Path) -> None:
    with target_or_skip("memcached") as target:
        process = started(
            "random-user-capacity",
            "--scale=small",
            "--endpoint",
            target.memcached(),
            "--set=measure=40",
            "--set=warmup=0",
            f"--out={tmp_path}",
            "--set=repetitions=2",
        )
        read_to(process, "rows of", target.address)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        _, reply = process.communicate(timeout=30)
    assert process.returncode == 130, reply


@pytest.mark.nightly
def test_a_server_that_is_gone_ends_the_run_with_its_points(tmp_path: Path) -> None:
    with target_or_skip("memcached") as target:
        process = started(
            "random-user-capacity", "--scale=small", "--endpoint", target.memcached(), f"--out={tmp_path}"
        )
        read_to(process, "[1/", target.address)
        subprocess.run(["kill", "-KILL", str(target.pid)], check=True)
        assert process.stderr is not None
        errors = process.stderr.read()
        process.communicate(timeout=30)
    assert process.returncode == 2, errors
    [made] = tmp_path.iterdir()
    assert str(made) in errors.splitlines()[-1]
    assert "Traceback" not in errors
    run = folder.read(made)
    assert len(run.points) >= 1
    assert run.info["stopped"]
