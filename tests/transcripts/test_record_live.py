"""Recording from the real servers: both plugins, set up, reloaded, restarted, killed and crashed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import pytest
from helpers.commands import kvref
from helpers.live import missing_skips
from helpers.waiting import until

from kvref_conformance import corpus
from kvref_conformance.corpus.conversation import from_json, to_json
from kvref_conformance.corpus.observe import play
from kvref_conformance.corpus.record import record
from kvref_conformance.corpus.targets.plugin import PluginTarget
from kvref_testbed import targets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kvref_conformance.corpus.conversation import Conversation

pytestmark = [pytest.mark.live, pytest.mark.nightly]
PLUGINS = ("mysql-8.0-plugin", "mysql-5.6-plugin")


def script(*steps: dict, **fields: object) -> Conversation:
    return from_json({"id": "x-001", "group": "x", "title": "a title", "steps": list(steps)} | fields)


def answers(conversation: Conversation, version: str) -> list[object]:
    return [step["got"][version] for step in to_json(conversation)["steps"] if "got" in step]


@pytest.fixture(scope="module", params=PLUGINS)
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[PluginTarget, PluginTarget]]:
    with ExitStack() as stack, missing_skips():
        one, other = (stack.enter_context(targets.plugin_server(request.param)) for _ in range(2))
        yield PluginTarget(one), PluginTarget(other, used=True)


def test_recording_twice_gives_the_same(pair: tuple[PluginTarget, PluginTarget]) -> None:
    conversation = script(
        {"send": {"on": "a", "packets": ["set k 3 100 1\r\n1\r\n"]}},
        {"send": {"on": "a", "packets": ["gets k AA\r\n"]}},
        {"send": {"on": "a", "packets": ["cas k 3 100 1 {c1}\r\n2\r\n"]}},
        {"send": {"on": "b", "packets": ["cas k 3 100 1 {c1}\r\n3\r\n"]}},
        {"send": {"on": "b", "packets": ["gets k\r\n"]}},
        {"sql": {"on": "s", "statement": "SELECT c1, c2, c3, c4, c5 FROM test.demo_test ORDER BY c1"}},
        {"send": {"on": "a", "frames": "getq"}},
    )
    recordings = [record(conversation, *pair).entered(conversation) for _ in range(2)]
    assert recordings[0] == recordings[1]
    version = pair[0].version
    assert answers(recordings[0], version)[:6] == [
        "STORED\r\n",
        ["VALUE k 3 1 ", {"cas": 1}, "\r\n1\r\nVALUE AA 8 12 0\r\nHELLO, HELLO\r\nEND\r\n"],
        "STORED\r\n",
        "EXISTS\r\n",
        ["VALUE k 3 1 ", {"cas": 2}, "\r\n2\r\nEND\r\n"],
        {"rows": [["AA", "HELLO, HELLO", 8, 0, 0], ["k", "2", 3, {"cas": 2}, {"time": 100}]]},
    ]


def test_each_conversation_finds_its_own_world(pair: tuple[PluginTarget, PluginTarget]) -> None:
    one, _ = pair
    other_table = script(
        {"send": {"on": "a", "packets": ["get k\r\n"]}},
        {"sql": {"on": "s", "statement": "CREATE DATABASE litter"}},
        {"sql": {"on": "s", "statement": "CREATE TABLE litter.t (a INT)"}},
        sql=[
            "CREATE TABLE test.t (k VARCHAR(8) PRIMARY KEY, v VARCHAR(8))",
            "INSERT INTO test.t VALUES ('k', 'v')",
            "DELETE FROM innodb_memcache.containers",
            "INSERT INTO innodb_memcache.containers VALUES ('default', 'test', 't', 'k', 'v', '0', '0', '0', 'PRIMARY')",
        ],
    )
    assert play(other_table, one).steps[0].got == "VALUE k 0 1\r\nv\r\nEND\r\n"
    plain = script(
        {"send": {"on": "a", "packets": ["get k AA\r\n"]}},
        {"sql": {"on": "s", "statement": "SHOW DATABASES LIKE 'litter'"}},
    )
    assert [step.got for step in play(plain, one).steps] == ["VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n", {"rows": []}]


def test_options_are_in_force_for_their_conversation_only(pair: tuple[PluginTarget, PluginTarget]) -> None:
    one, _ = pair
    steps = [
        {"send": {"on": "a", "packets": ["set k 0 0 1\r\n1\r\n"]}},
        {"sql": {"on": "s", "statement": "SELECT COUNT(*) FROM test.demo_test"}},
        {"sql": {"on": "s", "statement": "SELECT @@daemon_memcached_w_batch_size"}},
    ]
    options = ["--daemon_memcached_w_batch_size=4", "--innodb_api_bk_commit_interval=100000"]
    assert [step.got for step in play(script(*steps, options=options), one).steps[1:]] == [
        {"rows": [[1]]},
        {"rows": [[4]]},
    ]
    assert [step.got for step in play(script(*steps), one).steps[1:]] == [{"rows": [[2]]}, {"rows": [[1]]}]


def test_a_configuration_the_plugin_dislikes_leaves_the_port_closed(pair: tuple[PluginTarget, PluginTarget]) -> None:
    conversation = script(
        {"send": {"on": "a", "packets": ["get AA\r\n"]}}, sql=["DELETE FROM innodb_memcache.containers"]
    )
    recorded = record(conversation, *pair).entered(conversation)
    version = pair[0].version
    assert recorded.port == {version: "closed"}
    assert answers(recorded, version) == ["<ConnectionRefusedError>"]


def test_reload_restart_and_kill(pair: tuple[PluginTarget, PluginTarget]) -> None:
    one, _ = pair
    conversation = script(
        {"send": {"on": "a", "packets": ["set k 0 0 1\r\n1\r\n"]}},
        {"hang up": {"on": "a", "how": "close"}},
        {"restart": {"how": "reload"}},
        {"send": {"on": "b", "packets": ["get k\r\n"]}},
        {"restart": {"how": "restart"}},
        {"send": {"on": "c", "packets": ["set l 0 0 1\r\n2\r\n"]}},
        {"restart": {"how": "kill9"}},
        {"send": {"on": "d", "packets": ["get k l\r\n"]}},
        {"sql": {"on": "s", "statement": "SELECT COUNT(*) FROM test.demo_test"}},
    )
    played = play(conversation, one)
    assert [step.got for step in played.steps] == [
        "STORED\r\n",
        None,
        "open",
        "VALUE k 0 1\r\n1\r\nEND\r\n",
        "open",
        "STORED\r\n",
        "open",
        "VALUE k 0 1\r\n1\r\nVALUE l 0 1\r\n2\r\nEND\r\n",
        {"rows": [[3]]},
    ]
    assert played.crash is None


def test_a_crash_is_recorded_and_the_next_conversation_goes_on(pair: tuple[PluginTarget, PluginTarget]) -> None:
    """8.0 dies of an empty range with words behind it, 5.6 of a 250-byte `@@` word (core:range-077, core:map-065)."""
    version = pair[0].version
    deadly = "get zz @>zz a\r\nget AA\r\n" if version.startswith("8") else f"get @@{'x' * 248}\r\n"
    conversation = script({"send": {"on": "a", "packets": [deadly]}}, {"send": {"on": "b", "packets": ["get AA\r\n"]}})
    recorded = record(conversation, *pair).entered(conversation)
    assert recorded.crash.keys() == {version}
    assert str(answers(recorded, version)[0]).endswith("<EOF>")
    assert answers(recorded, version)[1] == "<ConnectionRefusedError>"
    assert (
        play(script({"send": {"on": "a", "packets": ["get AA\r\n"]}}), pair[0]).steps[0].got
        == "VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
    )


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    with missing_skips(), targets.running("memcached"):
        pass
    file = tmp_path / "scripts.jsonl"
    conversations = [
        script(
            {"send": {"on": "a", "packets": ["gets AA\r\n"]}},
            {"sql": {"on": "s", "statement": "SELECT 1"}},
            id=f"x-{number:03}",
        )
        for number in (1, 2)
    ]
    corpus.write(
        file, [*conversations, script({"send": {"on": "a", "packets": ["get AA\r\n"]}}, id="y-001", sql=["SELECT 1"])]
    )
    return file


def test_the_command_merges_what_was_recorded(scripts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    before = [json.loads(line) for line in scripts.read_text().splitlines()]
    before[0]["steps"][0]["got"] = {"8.0.33": "kept"}
    elsewhere = before[1] | {"id": "z-001"}
    out.write_text(json.dumps(before[0]) + "\n" + json.dumps(elsewhere) + "\n")
    done = kvref("record", scripts, "--target", "memcached", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "2 recorded, 0 failed" in done.stdout
    got = [each.steps[0].got for each in corpus.read(out).values()]
    version = next(key for key in got[0] if key.startswith("memcached-"))
    assert got == [
        {"8.0.33": "kept", version: ["VALUE AA 8 12 ", {"cas": 1}, "\r\nHELLO, HELLO\r\nEND\r\n"]},
        {},
        {version: ["VALUE AA 8 12 ", {"cas": 1}, "\r\nHELLO, HELLO\r\nEND\r\n"]},
        {},
    ]
    again = kvref("record", out, "--target", "memcached", "--missing")
    assert "1 recorded" in again.stdout


def test_an_interrupt_keeps_what_was_recorded(scripts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    steps = ({"send": {"on": "a", "packets": ["get AA\r\n"]}}, {"pause": {"seconds": 3}})
    corpus.write(scripts, [script(*steps, id=f"x-{number:03}") for number in range(10)])
    words = [sys.executable, "-m", "kvref", "record", str(scripts), "--target", "memcached", "--out", str(out)]
    with subprocess.Popen(
        words,
        stderr=subprocess.DEVNULL,
        # A run started in the background inherits an ignored SIGINT; a person's Ctrl-C meets the default.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no other thread runs here
    ) as running:
        until(out.exists)
        os.kill(running.pid, signal.SIGINT)
        assert running.wait(60) == 1
    recorded = [bool(each.versions()) for each in corpus.read(out).values()]
    assert recorded == sorted(recorded, reverse=True)
    assert recorded[0]
    assert not recorded[-1]
