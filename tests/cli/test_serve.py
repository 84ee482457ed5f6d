"""`kvref serve`, `init` and `probe` as a user types them: what they say of bad input, and their exit codes."""

from __future__ import annotations

import pickle
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from helpers.commands import kvref, refusal
from helpers.serving import ask, running, serving

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.live
@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_place_of_a_temporary_store_is_logged_at_the_end(workers: str) -> None:
    words = [sys.executable, "-m", "kvref", "serve", "--listen", "127.0.0.1:0", "--workers", workers]
    with running(words, "") as served:
        name = served.wait_for("no --store given").strip().rpartition(" ")[2]
        with served.connect() as client:
            assert ask(client, b"set k 0 0 1\r\nv\r\n") == b"STORED\r\n"
        served.process.terminate()
        assert served.wait_for("to serve them again").endswith(f"give --store {name}\n")
    with closing(sqlite3.connect(name.removeprefix("sqlite:///"))) as file:
        assert file.execute("SELECT COUNT(*) FROM cache").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["--profile", "mysql-9"],
            "no profile 'mysql-9', did you mean 'mysql-8.0': choose one of kvref, memcached, mysql-5.6, mysql-8.0",
        ),
        (["--profile", "memcached"], "profile 'memcached' has no mappings to serve"),
        (["--listen", "localhost"], "address 'localhost': write HOST:PORT"),
        (["--listen", "127.0.0.1:70000"], "address '127.0.0.1:70000': write HOST:PORT"),
        (["--set", "innodb_lock_wait_timeout"], "write NAME=VALUE"),
        (
            ["--set", "innodb_lock_wait=1"],
            "unknown setting 'innodb_lock_wait', did you mean 'innodb_lock_wait_timeout': choose one of daemon_",
        ),
        (["--set", "innodb_lock_wait_timeout=0"], "write a number from 1 to 1073741824"),
        (["--set", "daemon_memcached_w_batch_size=1048577"], "write a number from 1 to 1048576 (writes per"),
        (["--set", "innodb_api_trx_level=-1"], "write a number from 0 to 3 (isolation"),
        (["--config", "no.toml"], "configuration file no.toml: "),
        (
            ["--store", "mysq://root@localhost/"],
            "store 'mysq://root@localhost/', did you mean mysql://: write sqlite:///PATH, mysql://USER@HOST/ or memory://",
        ),
        (["--store", "mysql://root:secret@localhost/"], "put the password into KVREF_MYSQL_PASSWORD"),
        (["--metrics", "9150"], "address '9150': write HOST:PORT"),
        (["--log-format", "xml"], "'xml' is not one of 'text', 'json'"),
    ],
)
def test_bad_options(arguments: list[str], text: str) -> None:
    refused(2, text, *arguments, run=refusal)


@pytest.mark.parametrize(
    ("store", "text"),
    [
        ("mysql://root@127.0.0.1:1/", "store mysql://root@127.0.0.1:1/: 2003 Can't connect to MySQL server"),
        (
            "sqlite:////no/such/folder/x.sqlite",
            "store /no/such/folder/x.sqlite: there is no directory /no/such/folder: create it, or name another file",
        ),
    ],
)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_store_that_cannot_be_opened(store: str, text: str, workers: str) -> None:
    refused(3, text, "--store", store, "--create", "--workers", workers)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_defect_ends_with_1_and_its_trace(tmp_path: Path, workers: str) -> None:
    broken = (
        "import kvref.server.telemetry.lifecycle as lifecycle, kvref.cli\n"
        "lifecycle.Lifecycle.configured = lambda *_: 1 / 0\n"
        f"kvref.cli.main(['serve', '--listen', '127.0.0.1:0', '--create', '--store', 'sqlite:///{tmp_path}/x.sqlite', '--workers', '{workers}'])"
    )
    ended = subprocess.run([sys.executable, "-c", broken], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, "ZeroDivisionError" in ended.stderr) == (1, True)


def test_the_reference_and_the_help_explain_every_exit_code() -> None:
    reported = dict(re.findall(r"^ +(\d)  (.+)$", kvref("serve", "--help").stdout, re.MULTILINE))
    assert list(reported) == ["0", "1", "2", "3"]
    page = (Path(__file__).parents[2] / "docs" / "reference" / "errors.md").read_text()
    section = page.partition("## Exit codes of kvref serve\n")[2].partition("\n## ")[0]
    explained = dict(re.findall(r"^\| (\d) \| (.+) \|$", section, re.MULTILINE))
    assert all(explained[code].startswith(text) for code, text in reported.items())


def refused(code: int, text: str, *arguments: str, run: Run = kvref) -> None:
    result = run("serve", *arguments)
    assert result.returncode == code
    assert text in result.stderr
    assert "Traceback" not in result.stderr
    assert "secret" not in result.stderr


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = kvref(
            "serve", "--listen", f"127.0.0.1:{port}", "--create", "--store", f"sqlite:///{tmp_path}/x.sqlite"
        )
    assert result.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use: choose another --listen" in result.stderr


def test_no_usable_row_stops_the_start_and_names_each(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    assert kvref("init", "--demo", "--store", f"sqlite:///{path}").returncode == 0
    with sqlite3.connect(path) as database:
        database.execute("UPDATE containers SET value_columns = 'nope'")
    database.close()
    result = kvref("serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:///{path}")
    assert result.returncode == 2
    assert (
        "container 'aaa': table demo_test has no value column 'nope': its columns are c1, c2, c3, c4, c5"
        in result.stderr
    )


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_file_with_foreign_tables_is_refused_and_stays_as_it_is(tmp_path: Path, workers: str) -> None:
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)")
    database.close()
    before = path.read_bytes()
    refused(
        2,
        f"store {path}: the file has tables ('users') and no table containers: name another file, or add the"
        f" configuration tables to this one: kvref init --store sqlite:///{path}\n",
        "--listen", "127.0.0.1:0", "--store", f"sqlite:///{path}", "--workers", workers,
    )  # fmt: skip
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["shop.sqlite"]
    assert kvref("init", "--demo", "--store", f"sqlite:///{path}").returncode == 0
    with serving(path, "--workers", workers) as served, served.connect() as client:
        client.sendall(b"get AA\r\n")
        assert client.recv(100) == b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"


def test_a_foreign_table_containers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "docks.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE containers (name TEXT PRIMARY KEY, db_schema TEXT, tonnes REAL)")
    database.close()
    before = path.read_bytes()
    text = "the table containers is not the plugin's, it lacks db_table, key_columns, value_columns, flags, "
    refused(2, text, "--listen", "127.0.0.1:0", "--store", f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_file_without_tables_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "empty.sqlite"
    path.touch()
    with serving(path) as served:
        served.wait_for("created the configuration tables and the plugin's demo rows in")


def test_a_path_that_does_not_exist_is_created_only_on_request(tmp_path: Path) -> None:
    path = tmp_path / "typo.sqlite"
    text = f"store {path}: there is no such file: create it with kvref init --store sqlite:///{path}, or add --create"
    refused(2, text, "--listen", "127.0.0.1:0", "--store", f"sqlite:///{path}")
    assert not path.exists()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "text.sqlite"
    path.write_text("no database, " * 100)
    refused(3, f"store {path}: file is not a database", "--listen", "127.0.0.1:0", "--store", f"sqlite:///{path}")


def test_the_default_store_is_a_temporary_file_and_is_named() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kvref", "serve", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    while "listening on 127.0.0.1:" not in process.stderr.readline():
        assert process.poll() is None
    process.terminate()
    process.wait(timeout=60)
    process.stderr.close()
    assert "no --store given: serving a new file, sqlite:////" in first
    path = Path(first.split("sqlite:///")[1].strip())
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT containers.name FROM containers").fetchall() == [("cache",)]
    path.unlink()
    path.parent.rmdir()


def test_init_twice(tmp_path: Path) -> None:
    dsn = f"sqlite:///{tmp_path}/x.sqlite"
    assert "created the configuration tables and demo rows" in kvref("init", "--demo", "--store", dsn).stdout
    assert "the configuration tables already exist" in kvref("init", "--demo", "--store", dsn).stdout


@pytest.mark.parametrize(
    ("options", "created", "names"),
    [
        ([], "the configuration tables and the cache table cache", ["cache"]),
        (["--cache", "sessions"], "the configuration tables and the cache table sessions", ["sessions"]),
        (["--demo", "--cache"], "the configuration tables and demo rows and the cache table cache", ["aaa", "cache"]),
    ],
)
def test_init_of_a_new_file(tmp_path: Path, options: list[str], created: str, names: list[str]) -> None:
    path = tmp_path / "x.sqlite"
    assert kvref("init", "--store", f"sqlite:///{path}", *options).stdout == f"sqlite:///{path}: created {created}\n"
    with closing(sqlite3.connect(path)) as file:
        rows = file.execute("SELECT containers.name FROM containers ORDER BY rowid").fetchall()
    assert rows == [(name,) for name in names]


def test_init_adds_a_cache_to_a_store_once(tmp_path: Path) -> None:
    dsn = f"sqlite:///{tmp_path}/x.sqlite"
    kvref("init", "--demo", "--store", dsn)
    added, again = (kvref("init", "--cache", "pages", "--store", dsn).stdout for _ in range(2))
    assert (added, again) == (
        f"{dsn}: created the cache table pages\n",
        f"{dsn}: the configuration tables already exist\n",
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.b", "cache name 'a.b': write a letter and up to 39 letters, digits or underscores"),
        ("demo_test", "there is a table 'demo_test' already: give the cache another name, --cache NAME"),
    ],
)
def test_names_that_no_cache_can_have(tmp_path: Path, name: str, text: str) -> None:
    dsn = f"sqlite:///{tmp_path}/x.sqlite"
    kvref("init", "--demo", "--store", dsn)
    refusal = kvref("init", "--cache", name, "--store", dsn)
    assert (refusal.returncode, refusal.stdout) == (2, "")
    assert refusal.stderr.endswith(f"{text}\n")


# Pickled dicts, keys of 250 bytes and of any kind, letter case: what cache clients send first.
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_new_store_serves_as_a_cache(tmp_path: Path, workers: str) -> None:
    path = tmp_path / "x.sqlite"
    kvref("init", "--store", f"sqlite:///{path}")
    with serving(path, "--workers", workers) as served, served.connect() as client:
        value = pickle.dumps({"a": b"\x00\xff\r\n"}) + bytes(1_000_000)
        for key in (b"k" * 250, b"K" * 250, b"\xff\xfe", b"\xc3\xa9"):
            stored = b"set %b 7 100 %d\r\n%b\r\n" % (key, len(value), value)
            assert ask(client, stored) == b"STORED\r\n"
            assert ask(client, b"get %b\r\n" % key) == b"VALUE %b 7 %d\r\n%b\r\nEND\r\n" % (key, len(value), value)
        assert ask(client, b"delete %b\r\n" % (b"K" * 250)) == b"DELETED\r\n"
        assert ask(client, b"get %b\r\n" % (b"K" * 250)) == b"END\r\n"
        assert ask(client, b"get %b\r\n" % (b"k" * 250)).endswith(b"END\r\n")


def test_probe_shows_exact_bytes(tmp_path: Path) -> None:
    with serving(tmp_path / "x.sqlite") as served:
        result = kvref("probe", f"127.0.0.1:{served.port}", typed="set k 0 0 2\\r\\na\\x01\nget k\nquit\nget k\n")
    assert result.returncode == 0
    assert result.stdout.splitlines() == [
        r"> set k 0 0 2\r\n", r"> a\x01\r\n", r"< STORED\r\n",
        r"> get k\r\n", r"< VALUE k 0 2\r\n", r"< a\x01\r\n", r"< END\r\n",
        r"> quit\r\n", "(the server closed the connection)",
    ]  # fmt: skip


def test_probe_without_a_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    result = kvref("probe", f"127.0.0.1:{port}")
    assert result.returncode == 2
    assert f"cannot reach 127.0.0.1:{port}: Connection refused" in result.stderr


def test_help_lists_every_command_and_setting() -> None:
    help_text = kvref("--help").stdout
    assert all(name in help_text for name in ("serve", "init", "conform", "probe", "target"))
    assert "innodb_lock_wait_timeout=50" in kvref("settings").stdout


@pytest.mark.parametrize("silence", ["0", "-1", "nan", "inf"])
def test_probe_silence_out_of_range(silence: str) -> None:
    result = refusal("probe", "127.0.0.1:1", "--silence", silence)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "secret" not in result.stderr


@pytest.mark.parametrize("arguments", [["serve", "--listen"], ["probe"]])
@pytest.mark.parametrize("address", ["..:1", "no-such-host.invalid:1", f"{'a' * 80}:1", f"127.0.0.1:{'9' * 5000}"])
def test_addresses_that_are_none(tmp_path: Path, arguments: list[str], address: str) -> None:
    store = ["--create", "--store", f"sqlite:///{tmp_path}/x.sqlite"] if arguments[0] == "serve" else []
    result = refusal(*arguments, address, *store)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert address[:20] in result.stderr


def test_a_delimiter_cut_inside_a_character(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    assert kvref("init", "--demo", "--store", f"sqlite:///{path}").returncode == 0
    with sqlite3.connect(path) as database:
        database.execute("UPDATE config_options SET value = 'a' || 'éééééééééééééééé' WHERE value = '.'")
    database.close()
    with serving(path) as served:
        served.wait_for("listening")
