"""The log of a running server: its formats, what is never in it, and that clients cannot fill it."""

from __future__ import annotations

import json
import logging
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import kvref
from helpers.database import database_or_skip, sql
from helpers.live import MYSQL_8
from helpers.serving import Served, ask, command, serving
from helpers.waiting import until, until_listening

from kvref.errors import printable
from kvref.server.telemetry.logs import MAX_WARNINGS, PERIOD, WarningLimit
from kvref_testbed.targets.ports import free_port

SECRET = "hidden-from-all"  # an invalid password, which is never shown
BATCHES = ("--set", "daemon_memcached_w_batch_size=9", "--set", "innodb_api_bk_commit_interval=100")
EVIL = "x\\nkvref: forged\\r\\x1b[31m\\u2028"


def objects(served: Served) -> list[dict[str, Any]]:
    """Return the records of a log in JSON; each line must be one."""
    return [json.loads(line) for line in served.log]


def map_evil(store: Path) -> None:
    """Map a row under a name with everything that a terminal heeds."""
    with closing(sqlite3.connect(store)) as file:
        file.execute(
            "INSERT INTO containers SELECT ?, db_schema, 'none', key_columns, value_columns, flags, cas_column,"
            " expire_time_column, unique_idx_name_on_key FROM containers",
            (EVIL.encode().decode("unicode_escape"),),
        )
        file.commit()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_json(tmp_path: Path, workers: str) -> None:
    with serving(tmp_path / "s.sqlite", "--log-format", "json", "--workers", workers) as served:
        map_evil(tmp_path / "s.sqlite")
        served.process.send_signal(signal.SIGHUP)
        served.wait_for("configuration reloaded")
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(timeout=60) == 0
    records = objects(served)
    now = datetime.now(UTC)
    for record in records:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["time"])
        assert now - datetime.fromisoformat(record["time"]) < timedelta(minutes=2)
        assert record["level"] in ("info", "warning")
        assert record["logger"].startswith("kvref")
        assert record["pid"] == served.process.pid
    by_text = {record["message"]: record for record in records}
    mapping = by_text["mapping aaa: test.demo_test key=c1 value=c2 flags=c3 cas=c4 expiry=c5"]
    assert (mapping["mapping"], mapping["table"]) == ("aaa", "test.demo_test")
    (listening,) = (record for text, record in by_text.items() if text.startswith("listening on"))
    assert listening["address"] == f"127.0.0.1:{served.port}"
    assert by_text["stopping"]["signal"] == "SIGTERM"
    (faulty,) = (record for record in records if record["level"] == "warning")
    assert "there is no table test.none" in faulty["message"]


@pytest.mark.parametrize("journal", [False, True])
def test_lines_of_text_have_a_time_unless_the_journal_adds_it(journal: bool) -> None:
    program = (
        "import logging, os\nfrom kvref.server.telemetry import logs\n"
        "found = os.fstat(2)\n"
        f"os.environ['JOURNAL_STREAM'] = f'{{found.st_dev}}:{{found.st_ino + {int(not journal)}}}'\n"
        "logs.set_up('text', 'info')\nlogging.getLogger('kvref').info('two\\nlines')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    time, _, text = done.stderr.partition("kvref: ")
    assert text == "two\\nlines\n"
    assert bool(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ", time)) != journal
    assert not (journal and time)


def test_what_is_served_stands_in_lines(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    assert kvref("init", "--demo", "--store", f"sqlite:///{path}").returncode == 0
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE t (k VARCHAR(9) PRIMARY KEY, v TEXT, w TEXT)")
        file.execute("INSERT INTO containers VALUES ('t', 'test', 't', 'k', 'v,w', '0', '0', '0', 'PRIMARY')")
        file.execute("INSERT INTO containers VALUES ('u', 'test', 'no', 'k', 'v', '0', '0', '0', 'PRIMARY')")
        file.commit()
    with serving(path, "--set", "item_size_max=2048", "--profile", "mysql-8.0") as served:
        reply = served.wait_for("connections (maxconns)")
        assert [line.removeprefix("kvref: ").rstrip("\n") for line in served.log] == [
            "container 'u': there is no table test.no: create it or correct the row",
            "profile mysql-8.0, default mapping aaa (test/demo_test), delimiter '.'",
            f"store sqlite:///{path}, one process",
            "mapping aaa: test.demo_test key=c1 value=c2 flags=c3 cas=c4 expiry=c5",
            "mapping t: test.t key=k value=v value=w",
            "settings item_size_max=2048",
            f"listening on 127.0.0.1:{served.port}",
            reply.removeprefix("kvref: ").rstrip("\n"),
        ]
        before = list(served.log)[:-2]
        served.reload()
        served.wait_for("configuration reloaded")
        assert served.log == [*before, "kvref: configuration reloaded\n"]


def test_names_of_the_configuration_make_no_lines(tmp_path: Path) -> None:
    with serving(tmp_path / "s.sqlite") as served:
        map_evil(tmp_path / "s.sqlite")
        served.reload()
        assert not [line for line in served.log if not line.startswith("kvref: ") or "forged" in line[:20]]
        assert not set("".join(served.log)) & set("\r\x1b\u2028")
        assert any("forged" in line for line in served.log)


def test_what_clients_cause_makes_no_lines_and_does_not_fill_the_log(tmp_path: Path) -> None:
    refusal = EVIL.encode().decode("unicode_escape")
    with serving(tmp_path / "s.sqlite", *BATCHES) as served, ExitStack() as stack:
        clients = [stack.enter_context(served.connect()) for _ in range(3 * MAX_WARNINGS)]
        for number, client in enumerate(clients):
            ask(client, b"get @@x\x1b[31m.k\r\nbind y\x1b\r\nset k\x1b[%d 0 0 1\r\n\x1b\r\n\x00\x1b\x9b\r\n" % number)
            assert ask(client, b"set k%d 0 0 1\r\n1\r\n" % number) == b"STORED\r\n"
        with closing(sqlite3.connect(tmp_path / "s.sqlite", isolation_level=None)) as file:
            file.execute(f"CREATE TRIGGER no BEFORE INSERT ON demo_test BEGIN SELECT RAISE(ABORT, '{refusal}'); END")
        before = len(served.log)
        stack.close()  # what each had written is committed now, and refused
        with served.connect() as client:
            until(lambda: b"curr_connections 2\r\n" in ask(client, b"stats\r\n"))
        lines = served.log[before:]
    assert sum(line.startswith("kvref: background commit of a batch failed: ") for line in lines) == MAX_WARNINGS
    assert len(lines) == 2 * MAX_WARNINGS  # the store says so too
    assert all(r"x\nkvref: forged\r\x1b[31m\u2028" in line for line in lines)


def test_warnings_of_one_kind_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("kvref.log_throttle.time.monotonic", lambda: now)
    bound = WarningLimit()

    def passed(message: str, level: int = logging.ERROR, name: str = "kvref.server") -> logging.LogRecord | None:
        record = logging.LogRecord(name, level, "", 0, message, (), None)
        return record if bound.filter(record) else None

    assert sum(passed("store %s: full") is not None for _ in range(500)) == MAX_WARNINGS
    assert passed("store %s: another thing") is not None
    assert sum(passed("%s", name="kvref.served") is not None for _ in range(500)) == 500
    assert sum(passed("reloaded", logging.INFO) is not None for _ in range(500)) == 500
    now += PERIOD + 1
    after = passed("store %s: full")
    assert after is not None
    assert vars(after)["left_out"] == 500 - MAX_WARNINGS


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain ü €", "plain ü €"), ("a\nb\r\x1b[1m", r"a\nb\r\x1b[1m"), ("\u2028\x85\ud800", r"\u2028\x85\ud800")],
)
def test_what_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_levels(tmp_path: Path) -> None:
    port = free_port()
    words = [*command(tmp_path / "quiet.sqlite"), "--listen", f"127.0.0.1:{port}", "--log-level", "warning"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    until_listening(("127.0.0.1", port), lambda: process.poll() is None).close()
    process.terminate()
    assert (process.communicate(timeout=60)[1], process.returncode) == ("", 0)
    with serving(tmp_path / "s.sqlite", "--log-level", "debug") as served, served.connect() as client:
        ask(client, b"get @@nope.k\r\n")
        served.wait_for("mapping 'nope': no container 'nope'")
    with serving(tmp_path / "s.sqlite") as served, served.connect() as client:
        ask(client, b"get @@nope.k\r\n")
        assert "nope" not in "".join(served.log)


@pytest.mark.live
@pytest.mark.parametrize("name", [MYSQL_8, "mariadb"])
@pytest.mark.parametrize("where", ["environment", "file"])
def test_a_password_is_never_shown(name: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with database_or_skip(name) as database:
        sql(database, f"CREATE USER 'kv'@'%' IDENTIFIED BY '{SECRET}'", "GRANT ALL ON *.* TO 'kv'@'%'")
        dsn = f"mysql://kv@127.0.0.1:{database.port}/?timeout=2"
        if where == "environment":
            monkeypatch.setenv("KVREF_MYSQL_PASSWORD", SECRET)
        else:
            (tmp_path / "password").write_text(SECRET)
            dsn += f"&password_file={tmp_path / 'password'}"
        options = ("--log-level", "debug", "--log-format", "json", "--metrics", "127.0.0.1:0")
        with serving(dsn, *options) as served, served.connect() as client:
            assert ask(client, b"get AA\r\n").startswith(b"VALUE")
            served.reload()
            database.kill()
            reply = ask(client, b"get AA\r\nset a 0 0 1\r\n1\r\n")
            assert reply.startswith(b"SERVER_ERROR")
            served.reload()
        assert SECRET not in "".join(served.log) + reply.decode()
        assert "reloaded, the previous one stays" in "".join(served.log)
