"""What cannot be done is refused with a text that names the value and the fix; nothing here needs a server."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from helpers.live import missing_skips

from kvref.cli import main
from kvref.errors import TargetError
from kvref_testbed import targets
from kvref_testbed.targets import artifacts, builds, needs
from kvref_testbed.targets.plugin import statements

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


def test_down_wants_a_name_or_all(kvref: Run) -> None:
    assert kvref("down").returncode == 2
    assert kvref("down", "memcached", "--all").returncode == 2


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


def test_missing_go_is_named_with_what_it_builds(kvref: Run, tmp_path: Path) -> None:
    refused = kvref("up", "vitess", PATH="", KVREF_CACHE=str(tmp_path / "cache"))
    assert refused.returncode == 2
    assert "install Go 1.26 or later to build Vitess" in refused.stderr


def test_missing_maven_is_named_with_its_installation(kvref: Run, tmp_path: Path) -> None:
    # Without a cache and without a Maven repository the artifact has to be downloaded.
    refused = kvref("up", "mysql-8.0-plugin", PATH="", KVREF_CACHE=str(tmp_path / "cache"), HOME=str(tmp_path))
    assert refused.returncode == 2
    assert "apt-get install maven" in refused.stderr


def test_a_missing_library_is_named_with_its_installation() -> None:
    # Word for word what the dynamic loader of glibc prints.
    reply = (
        "bin/mysqld: error while loading shared libraries: libaio.so.1: cannot open shared object file: No such file"
    )
    assert "apt-get install libaio1 libnuma1 libncurses5" in str(needs.missing_library(reply))
    assert needs.missing_library("mysqld: ready for connections") is None


def test_a_server_of_another_release_wants_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(targets.MissingError, match="only root may do either: run as root"):
        builds.MYSQL_9_7.program(targets.QUIET)


def test_a_server_of_another_release_wants_a_debian_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # apt on a machine whose sources are not Debian's, or were never read.
    config = tmp_path / "apt.conf"
    config.write_text(f'Dir::State::lists "{tmp_path}";\n')
    monkeypatch.setenv("APT_CONFIG", str(config))
    with pytest.raises(targets.MissingError, match=r"apt knows no Debian archive.*: run apt-get update"):
        builds.mirror()


def test_a_missing_server_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(needs, "_SERVERS", "")
    with pytest.raises(
        targets.MissingError, match=r"'mariadbd' is not installed.*: apt-get install mariadb-server-core"
    ):
        builds.MARIADB.program(targets.QUIET)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(targets.MissingError, match="apt-get install debootstrap"):
        builds.MYSQL_9_7.program(targets.QUIET)


def test_a_failing_installation_says_what_debootstrap_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVREF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(builds, "mirror", lambda: f"file://{tmp_path}/nothing")
    if os.geteuid() != 0:
        pytest.skip("only root may install")
    with missing_skips():
        needs.tool("debootstrap")
    with pytest.raises(targets.MissingError, match=r"debootstrap could not install.*status \d+\):(?s:.*)nothing"):
        builds.MYSQL_9_7.program(targets.QUIET)
    assert [each.suffix for each in (tmp_path / "cache" / "servers").iterdir()] == [".lock"]


@pytest.mark.parametrize("name", ["memcached", "mysql-8.0-plugin"])
def test_a_target_with_memcached_is_no_sql_server(name: str) -> None:
    with (
        pytest.raises(TargetError, match=f"'{name}' is more.*: choose mariadb, mysql-8.0, mysql-9.7"),
        targets.sql_server(name),
    ):
        pytest.fail("it started")


@pytest.mark.parametrize("command", ["conform", "replay"])
def test_a_target_that_speaks_sql_only_is_not_judged(command: str) -> None:
    refused = CliRunner().invoke(main, [command, "--target", "mariadb"])
    assert refused.exit_code == 2
    assert "mariadb answers SQL and no memcached command: choose mysql-8.0-plugin," in refused.output


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


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"processes": 1}', '{"name": "memcached", "pid": 1}'])
def test_a_spoilt_state_file_is_named(kvref: Run, state: Path, content: str) -> None:
    file = state / "memcached.json"
    file.parent.mkdir()
    file.write_text(content)
    for arguments in (["status"], ["up", "memcached"], ["down", "memcached"]):
        refused = kvref(*arguments)
        assert refused.returncode == 2
        assert str(file) in refused.stderr
        assert "delete the file" in refused.stderr
    file.unlink()


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


def test_unpacking_takes_what_is_kept_and_misses_what_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "some.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("bin/mysqld", "bin/mysql", "lib/private/deep/x.so", "share/a.sql"):
            archive.writestr(name, name)
    artifacts.extract(file, ("bin/mysqld", "lib/private/*"), tmp_path / "out", targets.QUIET)
    found = {str(each.relative_to(tmp_path / "out")) for each in (tmp_path / "out").rglob("*") if each.is_file()}
    assert found == {"bin/mysqld", "lib/private/deep/x.so"}
    assert os.access(tmp_path / "out" / "bin" / "mysqld", os.X_OK)
    with pytest.raises(TargetError, match=r"nothing like 'lib/plugin/\*'"):
        artifacts.extract(file, ("lib/plugin/*",), tmp_path / "out", targets.QUIET)


def test_statements_end_where_the_mysql_client_ends_them() -> None:
    script = "-- words; more\nCREATE DATABASE a;\nUSE a\n\n-- words\nCREATE TABLE t (a INT,\n  b INT);\nuse b;\n"
    assert list(statements(script)) == ["CREATE DATABASE a", "USE a", "CREATE TABLE t (a INT,\n  b INT)", "use b"]
