"""What cannot be done is refused with a text that names the value and the fix; nothing here needs a server."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from kvref_testbed import targets
from kvref_testbed.targets import builds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

pytestmark = pytest.mark.nightly


def test_an_unknown_name_is_answered_with_the_known_ones(kvref: Run) -> None:
    for verb in ("up", "down"):
        refused = kvref(verb, "mysql-4.0")
        assert refused.returncode == 2
        assert "'mysql-4.0'" in refused.stderr
        assert all(name in refused.stderr for name in targets.names())


def test_list_names_every_target_with_its_profile(kvref_json: Run) -> None:
    assert {each["name"]: each["profile"] for each in kvref_json("list")} == {
        "mysql-8.0-plugin": "mysql-8.0",
        "mysql-5.6-plugin": "mysql-5.6",
        "memcached": "memcached",
        "twemproxy": "mysql-8.0",
        "twemproxy-memcached": "memcached",
        "yrmcds": "memcached",
        "memcached-newer": "memcached",
        "memcached-proxy": "memcached",
        "nodecached": "memcached",
        "hazelcast": "memcached",
        "kvref-mariadb": "kvref",
        "kvref-mysql-8.0": "kvref",
        "kvref-mysql-9.7": "kvref",
        "kvref-mysql-group": "kvref",
        "kvref-mysql-router": "kvref",
        "kvref-galera": "kvref",
        "kvref-vitess": "kvref",
        "kvref-sqlite": "kvref",
        "kvref-sqlite-workers": "kvref",
        "galera": None,
        "mysql-group": None,
        "mysql-router": None,
        "vitess": None,
        "mariadb": None,
        "mysql-8.0": None,
        "mysql-9.7": None,
    }


def test_a_missing_program_is_named_with_its_installation(kvref: Run) -> None:
    refused = kvref("up", "memcached", PATH="")
    assert refused.returncode == 2
    assert "apt-get install memcached" in refused.stderr


def test_a_server_of_another_release_wants_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(targets.MissingError, match="only root may do either: run as root"):
        builds.MYSQL_9_7.program(targets.QUIET)


def test_a_corrupted_artifact_is_refused_with_both_sums(kvref: Run, tmp_path: Path) -> None:
    artifact = builds.MYSQL_8_0_ZIP
    file = artifact.path_in(tmp_path / "maven")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"not the zip")
    refused = kvref("up", "mysql-8.0-plugin", KVREF_CACHE=str(tmp_path))
    assert refused.returncode == 2
    assert artifact.sha256 in refused.stderr
    assert hashlib.sha256(b"not the zip").hexdigest() in refused.stderr
    assert str(file) in refused.stderr
    assert not list((tmp_path / "servers").glob("*.unfinished"))


def test_a_reused_process_number_is_a_crash(state: Path) -> None:
    # This test's own process has the number, but not the start time.
    content = {
        "name": "memcached",
        "profile": "memcached",
        "version": "1",
        "address": "127.0.0.1:1",
        "sql": None,
        "store": None,
        "pid": os.getpid(),
        "log": "/nowhere/memcached.log",
        "folder": "/nowhere",
        "options": [],
        "processes": [{"name": "memcached", "pid": os.getpid(), "started": 1}],
    }
    state.mkdir()
    (state / "memcached.json").write_text(json.dumps(content))
    seen = next(each for each in targets.status() if each.name == "memcached")
    assert (seen.state, seen.exit_status, seen.log_tail) == ("crashed", None, ())
    assert seen.reason is not None
    assert "ended with an unknown status" in seen.reason
    targets.down("memcached")
