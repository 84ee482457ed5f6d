"""DSNs of a MySQL server: their parts, and what is said of bad ones, never with the password in it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from pymysql.err import OperationalError

from kvref.errors import ConfigError
from kvref.storage.mysql.errors import HangError
from kvref.storage.mysql.login import PASSWORD, cause, parse


def test_tcp() -> None:
    login = parse("mysql://us%40er@db.example:3307/?connections=4", {PASSWORD: "s3cret"})
    assert (login.user, login.host, login.port, login.socket) == ("us@er", "db.example", 3307, "")
    assert (login.password, login.connections, login.tls, login.reply_timeout(50)) == ("s3cret", 4, None, 60)
    assert "s3cret" not in login.text


def test_socket_and_password_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("päss \n", encoding="utf-8")
    login = parse(f"mysql://root@/?unix_socket=/run/db.sock&password_file={secret}", {PASSWORD: "other"})
    assert (login.host, login.socket, login.password, login.port) == ("", "/run/db.sock", "päss ", 3306)


def test_a_password_file_that_others_may_read_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    for mode, reply in ((0o600, []), (0o640, [f"password_file {secret}: other users of this machine may read it"])):
        secret.chmod(mode)
        caplog.clear()
        assert parse(f"mysql://root@db/?password_file={secret}", {}).password == "s3cret"
        assert [line.partition(": chmod")[0] for line in caplog.messages] == reply


def test_how_many_keys_go_together() -> None:
    for query, together in (("", 128), ("?coalesce=0", 0), ("?coalesce=1000", 1000)):
        assert parse(f"mysql://root@db/{query}", {}).together == together


def test_the_reply_timeout_fits_a_socket() -> None:
    login = parse("mysql://root@db/?timeout=86400", {})
    with socket.socket() as some:
        some.settimeout(login.reply_timeout(1 << 30))


def test_the_lock_wait_does_not_prolong_the_wait_for_a_silent_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        login = parse(f"mysql://root@127.0.0.1:{silent.getsockname()[1]}/?timeout=1", {})
        with pytest.raises(HangError, match="no answer within 1 s"):
            login.connect(lock_wait=50)


@pytest.mark.parametrize(
    ("dsn", "text"),
    [
        ("mysql://root:hidden@db/", r"store 'mysql://root:…@db/': .* KVREF_MYSQL_PASSWORD, or into a file"),
        ("mysql://root:hidden@db/shop", r"store 'mysql://root:…@db/shop': containers has the schema of each table"),
        ("mysql://db/", r"store 'mysql://db/': write mysql://USER@HOST"),
        ("mysql://root@/", "write mysql://USER@HOST"),
        ("mysql://root@db:99999/", "'db:99999' is not a valid HOST:PORT"),
        ("mysql://root@db/?sslca=x", "unknown sslca"),
        ("mysql://root@db/?connections=0", "connections=0: write a number from 1 to 1000"),
        ("mysql://root@db/?connections=²", "connections=²: write a number from 1 to 1000"),
        ("mysql://root@db/?coalesce=1001", "coalesce=1001: write a number from 0 to 1000"),
        ("mysql://root@db/?coalesce=-1", "coalesce=-1: write a number from 0 to 1000"),
        ("mysql://root@db/?timeout=0", "timeout=0: write a number from 1 to 86400"),
        (
            "mysql://root@db/?password=hidden",
            r"store 'mysql://root@db/\?password=…': unknown password, did you mean 'password_file': write",
        ),
        ("mysql://root:hidden", r"store 'mysql://root:…': write mysql://USER@HOST"),
        ("mysql://root:hid@den@db/?x=1", r"store 'mysql://root:…@db/\?x=1': others can read a command line"),
        ("mysql://root:hidden/part@db/", "write mysql://USER@HOST"),
        ("mysql://root@db/?ssl_ca=/no/such/file", "ssl_ca=/no/such/file: .*No such file"),
        ("mysql://root@db/?ssl_ca=/dev/null", "ssl_ca=/dev/null: .*no certificate"),
        ("mysql://root@db/?ssl_cert=/c.pem", "name the CA of the server's certificate too, ssl_ca=PATH"),
        ("mysql://root@db/?ssl_ca=x&ssl_verify_identity=no", "ssl_verify_identity=no: 1, or 0 for"),
        ("mysql://root@db/?password_file=/no/such/file", "password_file: .*No such file"),
    ],
)
def test_bad_ones(dsn: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text) as raised:
        parse(dsn, {})
    assert "hidden" not in str(raised.value)


def test_several_servers() -> None:
    login = parse("mysql://us%40er@one:3307,two,[::1]:3309/?timeout=3&wsrep_sync_wait=1", {PASSWORD: "s3cret"})
    assert (login.host, login.port, login.sync_wait) == ("one", 3307, 1)
    assert [(each.host, each.port) for each in login.each()] == [("one", 3307), ("two", 3306), ("::1", 3309)]
    assert {(each.user, each.password, each.timeout, each.nodes) for each in login.each()} == {
        ("us@er", "s3cret", 3, ())
    }
    assert login.each()[1].text == "mysql://us%40er@two:3306/"
    (alone,) = parse("mysql://root@db/", {}).each()
    assert (alone.text, alone.sync_wait) == ("mysql://root@db/", None)


@pytest.mark.parametrize(
    ("dsn", "text"),
    [
        ("mysql://root@one,,two/", "write mysql://USER@HOST"),
        ("mysql://root@one,/", "write mysql://USER@HOST"),
        ("mysql://root@one,two:99999/", "'two:99999' is not a valid HOST:PORT"),
        ("mysql://root@one,[::1/", r"'\[::1' is not a valid HOST:PORT"),
        ("mysql://root@one,[zz]:3307/", r"'\[zz\]:3307' is not a valid HOST:PORT"),
        ("mysql://root@one]:3307/", r"'one\]:3307' is not a valid HOST:PORT"),
        ("mysql://ro[ot@one:x/", "'one:x' is not a valid HOST:PORT"),
        ("mysql://ro[ot/", "write mysql://USER@HOST"),
        ("mysql://root@one:3306,one/", "a server is named twice"),
        ("mysql://root@one,two/?unix_socket=/run/db.sock", "unix_socket is one server's, and 2 are named"),
        ("mysql://root:hidden@one,two/", "others can read a command line"),
        ("mysql://root@one/?wsrep_sync_wait=16", "wsrep_sync_wait=16: write a number from 0 to 15"),
        ("mysql://root@one/?wsrep_sync_wait=-1", "wsrep_sync_wait=-1: write a number from 0 to 15"),
    ],
)
def test_bad_ones_of_several(dsn: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text) as raised:
        parse(dsn, {})
    assert "hidden" not in str(raised.value)


def test_which_server_gets_are_read_from() -> None:
    assert parse("mysql://root@db/", {}).reads == "primary"
    assert parse("mysql://root@db/?reads=primary", {}).reads == "primary"
    login = parse("mysql://root@one,two/?reads=session", {})
    assert [each.reads for each in (login, *login.each())] == ["session"] * 3


@pytest.mark.parametrize(
    ("dsn", "text"),
    [
        ("mysql://root@one,two/?reads=secondary", "reads=secondary: choose one of primary, replica, session"),
        ("mysql://root@one/?reads=replica", "reads=replica: name the other members of the group too, HOST,HOST,HOST"),
    ],
)
def test_bad_values_of_reads(dsn: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        parse(dsn, {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Field 'id' doesn't have a default value", "Field 'id' doesn't have a default value"),
        (
            "target: test.-80.primary: vttablet: rpc error: code = Unknown desc = Field 'id' doesn't have a default value"
            ' (errno 1364) (sqlstate HY000) (CallerID: u): Sql: "insert into t(a) values (:vtg1)", BindVars: {…}',
            "Field 'id' doesn't have a default value",
        ),
        (
            "transaction rolled back to reverse changes of partial DML execution: target: test.80-.primary: vttablet: rpc"
            " error: code = FailedPrecondition desc = Cannot delete (errno 1451) (sqlstate 23000) (CallerID: u): Sql: …",
            "Cannot delete",
        ),
        (
            "target: test.-80.primary: vttablet: rpc error: code = Aborted desc = transaction 17: ended at 2026-11-29"
            ' (exceeded timeout: 5s) (CallerID: u): Sql: "commit"',
            "target: test.-80.primary: vttablet: rpc error: code = Aborted desc = transaction 17: ended at 2026-11-29"
            " (exceeded timeout: 5s)",
        ),
    ],
)
def test_an_error_has_no_statement_and_that_of_a_shard_the_words_of_mysql(text: str, words: str) -> None:
    assert cause(OperationalError(1364, text)) == f"1364 {words}"
