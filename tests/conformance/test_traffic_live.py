"""Traffic of pymemcache and of binary frames through the proxy to kvref, replayed on kvref, memcached and the plugin."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from helpers.live import nightly, target_or_skip
from pymemcache.client.base import Client

from kvref.cli import main
from kvref_conformance.wire.frames import encode

pytestmark = [pytest.mark.live, pytest.mark.nightly]

CLIENTS = 8
ROUNDS = 6
SECRET = "7" * 32


@contextmanager
def proxy(server: str, out: Path, *options: str) -> Iterator[tuple[str, int]]:
    """Record in its own process; end it with SIGINT, as Ctrl-C does."""
    command = [sys.executable, "-m", "kvref", "record", "--proxy", "127.0.0.1:0", server, "--out", str(out), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        try:
            assert run.stderr is not None
            line = run.stderr.readline()
            assert line.startswith("recording: "), line
            host, port = line.split()[1].rsplit(":", 1)
            yield host, int(port)
            os.kill(run.pid, signal.SIGINT)
            response, complaints = run.communicate(timeout=20)
            assert run.returncode == 0, complaints
            assert f"{CLIENTS + 1} connections" in response
        finally:
            run.kill()


def talk(address: tuple[str, int], number: int) -> None:
    """Use most commands of pymemcache on keys of this client, and one item that was there before."""
    client = Client(address, default_noreply=False)
    for turn in range(ROUNDS):
        key = f"user:{number}:{turn}"
        client.set(key, b"value", noreply=turn % 2 == 0)
        assert client.get(key) == b"value"
        _, cas = client.gets(key)
        assert client.cas(key, b"new", cas)
        assert not client.cas(key, b"late", cas)
        client.add(key, b"x")
        client.replace(key, b"12")
        assert client.incr(key, 3) == 15
        client.append(key, b"0")
        client.get_many([key, "missing"])
        client.touch(key, 100)
        client.delete(key)
        client.delete(key)
        client.incr(key, 1)
        assert client.get("preloaded") == b"old"
    client.version()
    client.quit()


def talk_binary(address: tuple[str, int]) -> None:
    """Send frames, quiet ones among them, and wait for the last reply."""
    frames = (
        "set key=b1 flags=3 value=one; getq key=gone; setq key=b2 value=two; getk key=b2; incr key=n initial=5; noop"
    )
    with socket.create_connection(address) as connection:
        connection.sendall(encode(frames))
        # set, getk, incr and noop: 24 bytes each, extras, key and value.
        want, received = 4 * 24 + (4 + 2 + 3) + 8, b""
        while len(received) < want:
            data = connection.recv(4096)
            assert data, received
            received += data


def recorded(server: str, out: Path, *options: str) -> list[dict[str, Any]]:
    client = Client(server, default_noreply=False)
    client.set("preloaded", b"old")
    client.close()
    with proxy(server, out, *options) as address:
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(lambda number: talk(address, number), range(CLIENTS)))
        talk_binary(address)
    return [step for line in out.read_text().splitlines() for step in json.loads(line)["steps"]]


def replayed(file: Path, server: str, folder: Path) -> tuple[int, dict[str, Any], str]:
    result = folder / "result.json"
    words = ["replay", str(file), server, "--allow-destructive", "--json", str(result)]
    done = CliRunner().invoke(main, words)
    return done.exit_code, json.loads(result.read_text()), done.output


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Traffic with kvref, as it is and masked."""
    folder = tmp_path_factory.mktemp("traffic")
    (folder / "secret").write_text(SECRET)
    plain, masked = folder / "plain.jsonl", folder / "masked.jsonl"
    for file, options in ((plain, ()), (masked, ("--mask-key", str(folder / "secret")))):
        with target_or_skip("kvref-sqlite") as kvref:
            steps = recorded(kvref.memcached(), file, *options)
            # 15 commands in each round, version, quit, and six frames.
            assert sum("send" in step or "hex" in step for step in steps) == CLIENTS * (ROUNDS * 15 + 2) + 6
    return plain, masked


def test_a_replay_on_the_same_server_differs_in_nothing(recordings: tuple[Path, Path], tmp_path: Path) -> None:
    for file in recordings:
        with target_or_skip("kvref-sqlite") as kvref:
            code, result, output = replayed(file, kvref.memcached(), tmp_path)
        assert code == 0, output
        assert result["differ"] == 0
        assert result["earlier"] == CLIENTS * ROUNDS
        assert result["concurrent"] == 0
    assert result["masked"] > 0


def test_a_masked_recording_has_neither_keys_nor_values(recordings: tuple[Path, Path]) -> None:
    text = recordings[1].read_text()
    assert [word for word in ("user:", "preloaded", "value\\r", "missing") if word in text] == []
    assert "user:" in recordings[0].read_text()


def test_a_replay_on_memcached_shows_what_differs(recordings: tuple[Path, Path], tmp_path: Path) -> None:
    with target_or_skip("memcached") as memcached:
        code, result, output = replayed(recordings[0], memcached.memcached(), tmp_path)
        again = CliRunner().invoke(main, ["replay", str(recordings[0]), "--target", "memcached"])
    assert (code, again.exit_code) == (1, 1), output
    (cause,) = [cause for group in result["groups"] for cause in group["causes"] if cause["verb"] == "version"]
    assert cause["count"] == CLIENTS
    assert "KV-CONN-013" in output
    assert result["same"] + result["differ"] + result["earlier"] == result["commands"]


def on_model(file: Path, profile: str, folder: Path) -> tuple[int, dict[str, Any], str]:
    result = folder / "result.json"
    done = CliRunner().invoke(main, ["replay", str(file), "--model", profile, "--json", str(result)])
    return done.exit_code, json.loads(result.read_text()) if result.exists() else {}, done.output


def test_a_replay_on_the_model_differs_in_nothing(recordings: tuple[Path, Path], tmp_path: Path) -> None:
    for file in recordings:
        code, result, output = on_model(file, "kvref", tmp_path)
        assert code == 0, output
        # `version` is not a command of the model.
        assert result["beyond"] == CLIENTS
        assert result["earlier"] == CLIENTS * ROUNDS
        assert result["same"] + result["masked"] + result["earlier"] + result["beyond"] == result["commands"]


def test_memcached_replies_as_its_model(tmp_path: Path) -> None:
    file = tmp_path / "memcached.jsonl"
    with target_or_skip("memcached") as memcached:
        recorded(memcached.memcached(), file)
    code, result, output = on_model(file, "memcached", tmp_path)
    assert code == 0, output
    assert result["same"] > result["commands"] * 0.9


def test_the_model_shows_what_a_reply_breaks(recordings: tuple[Path, Path], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.jsonl"
    text = recordings[0].read_text()
    assert text.count('"15\\r\\n"') == CLIENTS * ROUNDS
    wrong.write_text(text.replace('"15\\r\\n"', '"16\\r\\n"', 1))
    code, result, output = on_model(wrong, "kvref", tmp_path)
    assert (code, result["differ"]) == (1, 1), output
    (group,) = result["groups"]
    assert group["causes"][0]["verb"] == "incr"
    assert group["requirements"]
    assert "recorded  16" in output


@pytest.mark.parametrize("name", [nightly("mysql-8.0-plugin")])
def test_a_replay_on_the_plugin_shows_what_differs(recordings: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    with target_or_skip(name) as plugin:
        code, result, output = replayed(recordings[0], plugin.memcached(), tmp_path)
    assert code == 1, output
    verbs = {cause["verb"] for group in result["groups"] for cause in group["causes"]}
    assert "touch" in verbs, output
