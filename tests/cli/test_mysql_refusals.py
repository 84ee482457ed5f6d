"""A MySQL store that cannot be served: each command names the cause and the fix, and starts nothing."""

from __future__ import annotations

import gc
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from helpers.database import database_or_skip, map_table, sql
from helpers.live import MYSQL_8, missing_skips, sql_server_or_skip
from helpers.waiting import until

from kvref.cli import main
from kvref_testbed import targets
from kvref_testbed.targets import SQLServer, mariadb_plugins
from kvref_testbed.targets.ports import free_port

SECRET = "hidden-from-all"  # an invalid password, which is never shown
COMMANDS = {
    "serve": ["serve", "--listen", "127.0.0.1:0", "--set", "innodb_lock_wait_timeout=1", "--store"],
    "init": ["init", "--demo", "--store"],
    "doctor": ["doctor", "--store"],
}
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
EACH = pytest.mark.parametrize("command", COMMANDS)


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        sql(server, f"CREATE USER 'kv'@'%' IDENTIFIED BY 'not {SECRET}'", "GRANT ALL ON *.* TO 'kv'@'%'")
        yield server


def refused(command: str, dsn: str, code: int = 2, password: str = SECRET) -> str:
    """Run a command that must refuse; return what it says."""
    result = run(command, dsn, password)
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert SECRET not in result.output
    if code > 1:
        assert result.stdout == ""
    # A terminal's lines are short.
    return " ".join(result.output.split())


def of_store(command: str) -> int:
    """Return the exit code where the store is not reached, or refuses."""
    return 3 if command == "serve" else 2


def run(command: str, dsn: str, password: str = SECRET) -> Result:
    result = CliRunner().invoke(main, [*COMMANDS[command], dsn], env={"KVREF_MYSQL_PASSWORD": password})
    gc.collect()  # PyMySQL leaves the socket of a refused connection to it, which warns
    return result


@EACH
@pytest.mark.parametrize(
    ("dsn", "message"),
    [
        ("mysql://kv@127.0.0.1:1/", "store mysql://kv@127.0.0.1:1/: 2003 Can't connect to MySQL server on '127.0.0.1'"),
        ("mysql://kv@no-such-host.invalid/", "2003 Can't connect to MySQL server on 'no-such-host.invalid'"),
        ("mysql://kv@/?unix_socket=/no/such.sock", "store mysql://kv@/?unix_socket=/no/such.sock: 2003 Can't connect"),
        ("mysql://kv@db/?password_file=/no/such/file", "password_file: No such file or directory"),
        ("mysql://kv@db/?ssl_ca=/no/such/file", "ssl_ca=/no/such/file: No such file or directory"),
        (f"mysql://kv:{SECRET}@db/", "put the password into KVREF_MYSQL_PASSWORD, or into a file named by"),
        (
            f"mysql://kv@db/?password={SECRET}",
            "unknown password, did you mean 'password_file': write mysql://USER@HOST[:PORT][,HOST[:PORT]…]/",
        ),
        ("mysql://kv@db/shop", "containers has the schema of each table: leave 'shop' out"),
    ],
)
def test_dsns_that_lead_nowhere(command: str, dsn: str, message: str) -> None:
    assert message in refused(command, dsn, of_store(command) if "2003" in message else 2)


@EACH
@pytest.mark.live
def test_wrong_credentials(database: SQLServer, command: str) -> None:
    for user in ("kv", "nobody"):
        message = refused(command, f"mysql://{user}@{database.host}:{database.port}/", of_store(command))
        assert f"1045 Access denied for user '{user}'@" in message
        assert "no password was given" not in message
    message = run(command, f"mysql://kv@{database.host}:{database.port}/", "").output
    assert (
        "(using password: NO): no password was given: put it into KVREF_MYSQL_PASSWORD, or into a file named by"
        in message
    )


@pytest.mark.live
@pytest.mark.parametrize("command", ["serve", "doctor"])
def test_a_missing_schema(database: SQLServer, command: str) -> None:
    sql(database, "RENAME TABLE innodb_memcache.containers TO test.containers")
    try:
        assert "create the tables with `kvref init`" in refused(command, database.dsn, password="")
    finally:
        sql(database, "RENAME TABLE test.containers TO innodb_memcache.containers")


@pytest.mark.live
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("ENGINE = MyISAM", "`test`.`odd` is a table of engine MyISAM: only InnoDB tables can be mapped"),
        ("PARTITION BY KEY () PARTITIONS 2", "`test`.`odd` is partitioned: the plugin cannot open such a table"),
        ("", "there is no table test.odd: create it or correct the row"),
    ],
)
def test_no_row_that_can_be_served(database: SQLServer, options: str, message: str) -> None:
    map_table(database, "odd", "v", "k VARCHAR(9) PRIMARY KEY", "v VARCHAR(9)")
    sql(database, "UPDATE innodb_memcache.containers SET db_table = 'none' WHERE name = 'aaa'")
    sql(database, f"ALTER TABLE test.odd {options}" if options else "DROP TABLE test.odd")
    try:
        for command, code in (("serve", 2), ("doctor", 1)):
            assert message in refused(command, database.dsn, code, password="")
    finally:
        sql(
            database,
            "DELETE FROM innodb_memcache.containers WHERE name = 'odd'",
            "UPDATE innodb_memcache.containers SET db_table = 'demo_test'",
            "DROP TABLE IF EXISTS test.odd",
        )


@pytest.mark.live
@pytest.mark.nightly
def test_a_table_of_spider() -> None:
    with missing_skips():
        spider = mariadb_plugins.options("mariadb-plugin-spider", "ha_spider", targets.QUIET)
    with database_or_skip("mariadb", spider) as front, sql_server_or_skip("mariadb") as node:
        table = "k VARCHAR(9) PRIMARY KEY, v VARCHAR(9)"
        sql(node, f"CREATE TABLE test.rows ({table})", "INSERT INTO test.rows VALUES ('a', '1')")
        where = f"HOST '{node.host}', PORT {node.port}, DATABASE 'test', USER 'root'"
        link = 'wrapper "mysql", srv "node", table "rows"'
        sql(
            front,
            f"CREATE SERVER node FOREIGN DATA WRAPPER mysql OPTIONS ({where})",
            f"CREATE TABLE test.spread ({table}) ENGINE = SPIDER COMMENT = '{link}'",
            "UPDATE innodb_memcache.containers SET db_table = 'spread', value_columns = 'v', key_columns = 'k',"
            " flags = '0', cas_column = '0', expire_time_column = '0'",
        )
        assert sql(front, "SELECT k, v FROM test.spread") == [("a", "1")]
        for command, code in (("serve", 2), ("doctor", 1)):
            message = refused(command, front.dsn, code, password="")
            assert "`test`.`spread` is a table of engine SPIDER: only InnoDB tables can be mapped: serve the" in message


@pytest.mark.live
def test_init_goes_on_with_what_failed_half_way(database: SQLServer) -> None:
    tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'innodb_memcache' ORDER BY 1"
    rows = [sql(database, f"SELECT * FROM innodb_memcache.{name}") for (name,) in sql(database, tables)]
    sql(
        database,
        "DROP DATABASE innodb_memcache",
        "DROP TABLE test.demo_test",
        "CREATE USER 'half'@'%'",
        "GRANT CREATE, INSERT, SELECT ON innodb_memcache.* TO 'half'@'%'",
    )
    dsn = f"mysql://half@{database.host}:{database.port}/"
    assert "1044 Access denied for user 'half'@'%' to database 'test'" in refused("init", dsn, password="")
    sql(database, "GRANT CREATE, INSERT, SELECT ON test.* TO 'half'@'%'")
    assert run("init", dsn, "").output == f"{dsn}: created the configuration tables and demo rows\n"
    assert [sql(database, f"SELECT * FROM innodb_memcache.{name}") for (name,) in sql(database, tables)] == rows
    assert sql(database, "SELECT c1, c2 FROM test.demo_test") == [("AA", "HELLO, HELLO")]
    assert run("init", dsn, "").output == f"{dsn}: the configuration tables already exist\n"
    sql(database, "DROP USER 'half'@'%'")


@pytest.mark.live
def test_init_keeps_off_tables_of_others(database: SQLServer) -> None:
    sql(
        database,
        "RENAME TABLE innodb_memcache.containers TO test.saved",
        "CREATE TABLE innodb_memcache.containers (container_id INT PRIMARY KEY, kind TEXT)",
        "DROP TABLE innodb_memcache.cache_policies",
    )
    tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'innodb_memcache' ORDER BY 1"
    before = sql(database, tables)
    message = {command: refused(command, database.dsn, password="") for command in COMMANDS}
    for text in message.values():
        assert "the table innodb_memcache.containers is not the plugin's, it lacks name, db_schema, " in text
        assert text.endswith("rename the table and run `kvref init`, or name another server")
    assert sql(database, tables) == before
    sql(database, "DROP TABLE innodb_memcache.containers", "RENAME TABLE test.saved TO innodb_memcache.containers")
    assert run("init", database.dsn, "").exit_code == 0  # adds cache_policies again
    assert sql(database, "SELECT COUNT(*) FROM innodb_memcache.cache_policies") == [(1,)]
    assert sql(database, "SELECT COUNT(*) FROM innodb_memcache.config_options") == [(2,)]
    sql(database, "CREATE DATABASE kvref", "CREATE TABLE kvref.pages (id INT PRIMARY KEY)")
    result = CliRunner().invoke(main, ["init", "--cache", "pages", "--store", database.dsn])
    assert "the table kvref.pages is not kvref's, it lacks cache_key, value, flags, cas, expires" in result.stderr
    assert sql(database, "SELECT COUNT(*) FROM innodb_memcache.containers WHERE name = 'pages'") == [(0,)]
    sql(database, "DROP DATABASE kvref")


def until_ended(process: subprocess.Popen[str], port: int) -> None:
    """Wait until a server ends, which listens at no time."""

    def ended() -> bool:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        return process.poll() is not None

    until(ended)


def test_a_host_that_never_answers() -> None:
    with ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        # Once its queue is full no connection is made any more, as behind a firewall.
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0)
            with suppress(BlockingIOError):
                waiting.connect(full.getsockname())
        for host, message in (
            (silent, "no answer within 1 s"),
            (full, "2003 Can't connect to MySQL server on '127.0.0.1'"),
        ):
            port = free_port()
            command = [f"127.0.0.1:{port}" if each == "127.0.0.1:0" else each for each in COMMANDS["serve"]]
            command.append(f"mysql://kv@127.0.0.1:{host.getsockname()[1]}/?timeout=1")
            process = stack.enter_context(
                subprocess.Popen([sys.executable, "-m", "kvref", *command], stderr=subprocess.PIPE, text=True)
            )
            until_ended(process, port)
            assert process.stderr is not None
            assert (process.returncode, message in process.stderr.read()) == (3, True)


def certificate(folder: Path, name: str, *, of: str = "", host: str = "IP:127.0.0.1") -> Path:
    """Make a certificate and its key, NAME.pem and NAME.key, signed by another one or, a CA, by itself."""
    made = folder / f"{name}.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
        "-subj",
        f"/CN={name}",
    ]
    if of:
        command += [
            "-CA",
            str(folder / f"{of}.pem"),
            "-CAkey",
            str(folder / f"{of}.key"),
            "-addext",
            f"subjectAltName={host}",
        ]
    subprocess.run([*command, "-keyout", folder / f"{name}.key", "-out", made], check=True, capture_output=True)
    (folder / f"{name}.key").chmod(0o644)
    return made


@pytest.mark.live
@pytest.mark.parametrize("name", [MYSQL_8, "mariadb"])
def test_tls(name: str, tmp_path: Path) -> None:
    with missing_skips():
        if shutil.which("openssl") is None:
            raise targets.MissingError("'openssl' is not installed: apt-get install openssl")
    ca, other = certificate(tmp_path, "ca"), certificate(tmp_path, "other")
    certificate(tmp_path, "server", of="ca")
    tmp_path.chmod(0o755)
    options = [f"--ssl-ca={ca}", f"--ssl-cert={tmp_path / 'server.pem'}", f"--ssl-key={tmp_path / 'server.key'}"]
    with database_or_skip(name, options) as server:
        sql(server, f"CREATE USER 'kv'@'%' IDENTIFIED BY '{SECRET}' REQUIRE SSL", "GRANT ALL ON *.* TO 'kv'@'%'")
        dsn = f"mysql://kv@127.0.0.1:{server.port}/"
        good = run("doctor", f"{dsn}?ssl_ca={ca}")
        assert good.exit_code == 0, good.output
        assert "certificate verify failed" in refused("doctor", f"{dsn}?ssl_ca={other}")
        named = f"mysql://kv@localhost:{server.port}/?ssl_ca={ca}"
        assert "Hostname mismatch, certificate is not valid for 'localhost'" in refused("doctor", named)
        assert run("doctor", f"{named}&ssl_verify_identity=0").exit_code == 0
        assert "1045 Access denied" in refused("doctor", dsn)
    with database_or_skip(name, ["--skip-ssl"]) as server:
        for command in COMMANDS:
            message = refused(command, f"mysql://root@127.0.0.1:{server.port}/?ssl_ca={ca}", of_store(command))
            assert "SSL is required but the server doesn't support it" in message
