"""Planned commands over SQLite are answered as they are by steps, also during changes by SQL."""

from __future__ import annotations

import random
import re
import socket
import sqlite3
from contextlib import ExitStack
from pathlib import Path

import pytest
from helpers.live import nightly
from helpers.serving import STEPS, Served, serving
from hypothesis import settings
from server.conversations import Peer, converse, frame

from kvref import collations, profiles
from kvref.storage.sqlite.store import SQLiteStore

SIZES = (0, 700, 1 << 20)  # of the row cache: no rows, a handful, all
TWO = ("--workers", "2")
TABLES = (
    "CREATE TABLE names (k VARCHAR(8) NOT NULL COLLATE NOCASE PRIMARY KEY, v VARCHAR(12), f INT, c BIGINT UNSIGNED, e INT)",
    "CREATE TABLE plain (k VARCHAR(40) NOT NULL PRIMARY KEY, v BLOB, other VARCHAR(20))",
    "CREATE TABLE numbers (k INT NOT NULL PRIMARY KEY, v TEXT, f INT)",
    "CREATE TABLE ruled (k VARCHAR(20) PRIMARY KEY, v VARCHAR(20) CHECK (v <> 'no'), n INT)",
    "CREATE TABLE western (k VARCHAR(9) NOT NULL COLLATE latin1_swedish_ci PRIMARY KEY, v VARCHAR(40), f INT,"
    " c BIGINT UNSIGNED) WITHOUT ROWID",
    "CREATE TABLE binary1 (k VARCHAR(20) NOT NULL COLLATE latin1_bin PRIMARY KEY, v BLOB, _rowid_ INT DEFAULT 3)",
    "CREATE TABLE bytes1 (k VARBINARY(20) NOT NULL PRIMARY KEY, v LONGBLOB, f INT UNSIGNED, c BIGINT UNSIGNED, e BIGINT)",
    "CREATE TABLE filled (k VARCHAR(20) NOT NULL COLLATE latin1_bin PRIMARY KEY, v VARCHAR(30) NOT NULL, f INT NOT NULL,"
    " c BIGINT UNSIGNED NOT NULL, e INT NOT NULL, kind VARCHAR(9) NOT NULL DEFAULT 'page')",
    "CREATE TABLE numbered (id INTEGER PRIMARY KEY, k VARCHAR(20) NOT NULL, v BLOB NOT NULL, e BIGINT)",
    "CREATE TABLE short (k VARCHAR(20) NOT NULL PRIMARY KEY, v VARCHAR(20), f INT, e INT)",
    "CREATE TABLE needy (k VARCHAR(20) NOT NULL PRIMARY KEY, v BLOB, owner INT NOT NULL, at INT NOT NULL DEFAULT (1 + 1))",
    "CREATE TABLE fixed (k CHAR(9) NOT NULL COLLATE NOCASE PRIMARY KEY, v VARCHAR(20))",
    "CREATE TRIGGER twice AFTER UPDATE ON ruled BEGIN UPDATE plain SET v = 'by trigger' WHERE k = new.k; END",
)
ROWS = (
    ("names", "names", "k", "v", "f", "c", "e"),
    ("names2", "names", "k", "v", "f", "c", "e"),
    ("plain", "plain", "k", "v", "0", "0", "0"),
    ("plain2", "plain", "other", "v", "0", "0", "0"),
    ("numbers", "numbers", "k", "v", "f", "0", "0"),
    ("western", "western", "k", "v", "f", "c", "0"),
    ("binary1", "binary1", "k", "v", "0", "0", "0"),
    ("bytes1", "bytes1", "k", "v", "f", "c", "e"),
    ("filled", "filled", "k", "v", "f", "c", "e"),
    ("numbered", "numbered", "k", "v", "0", "0", "e"),
    ("needy", "needy", "k", "v", "0", "0", "0"),
    ("short", "short", "k", "v", "f", "0", "e"),
    ("ruled", "ruled", "k", "v", "0", "0", "0"),
    ("fixed", "fixed", "k", "v", "0", "0", "0"),
)
INDEXES = {"plain2": "another", "numbered": "by_key"}
# But those of cas numbers, and of numbers in the order of arrival.
COLUMNS = {
    "names": "k, v, f, e",
    "plain": "k, v, other",
    "numbers": "k, v, f",
    "ruled": "k, v, n",
    "fixed": "k, v",
    "western": "k, v, f",
    "binary1": "k, v, _rowid_",
    "bytes1": "k, v, f, e",
    "filled": "k, v, f, e, kind",
    "numbered": "k, v, e",
    "needy": "k, v, owner, at",
    "short": "k, v, f, e",
}
SQL = (
    "UPDATE names SET v = 'sql' || v WHERE k = 'a'",
    "DELETE FROM names WHERE k = 'b'",
    "INSERT OR REPLACE INTO names VALUES ('B', 'new', 1, 2, 0)",
    "UPDATE plain SET v = x'00' WHERE k = 'a'",
    "INSERT OR REPLACE INTO plain VALUES (CAST('c' AS BLOB), 'blob key', 'o')",
    "INSERT OR REPLACE INTO western VALUES (CAST('c' AS BLOB), 'blob key', 1, 2)",
    "INSERT OR REPLACE INTO filled VALUES (CAST('c' AS BLOB), 'blob key', 1, 2, 0, 'page')",
    "UPDATE numbers SET v = 'n'",
    "UPDATE names SET e = 1",
    "UPDATE western SET v = 'sql'",
    "DELETE FROM binary1 WHERE k < 'b'",
    "UPDATE bytes1 SET v = x'00', e = 1 WHERE k = x'61'",
    "INSERT OR REPLACE INTO bytes1 VALUES (x'62', 'sql', 1, 2, 0)",
    "UPDATE filled SET v = 'sql', kind = 'post'",
    "INSERT OR REPLACE INTO needy VALUES ('a', 'sql', 1, 2)",
    "INSERT OR REPLACE INTO short VALUES ('a', 'sql', 1, 0)",
    "DELETE FROM short",
    "DELETE FROM numbered WHERE k > 'b'",
    "VACUUM",
    "DROP INDEX IF EXISTS another",
    "CREATE UNIQUE INDEX IF NOT EXISTS another ON plain (other)",
    "ALTER TABLE plain ADD COLUMN more TEXT",
    "ALTER TABLE plain DROP COLUMN more",
    "UPDATE containers SET flags = CASE flags WHEN 'f' THEN '0' ELSE 'f' END WHERE name = 'short'",
)
COMMAND = rb"(?m)^(?:get|set|stats)\b"


def _prepared(path: Path) -> Path:
    store = SQLiteStore(path, profiles.load("kvref"))
    store.initialise()
    store.close()
    with sqlite3.connect(path, isolation_level=None) as connection:
        collations.register(connection)
        for statement in TABLES:
            connection.execute(statement)
        connection.execute("CREATE UNIQUE INDEX another ON plain (other)")
        connection.execute("CREATE UNIQUE INDEX by_key ON numbered (k)")
        for name, table, key, value, *options in ROWS:
            row = (name, "test", table, key, value, *options, INDEXES.get(name, "PRIMARY"))
            connection.execute("INSERT INTO containers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.close()
    return path


class _Peer(Peer):
    """One server over its own file."""

    def __init__(self, served: Served, stack: ExitStack, *, hides_cas: bool = True) -> None:
        super().__init__(served, stack, hides_cas=hides_cas)
        self._sql = sqlite3.connect(served.store, isolation_level=None, timeout=60)
        collations.register(self._sql)
        stack.callback(self._sql.close)
        self.reload = served.reload

    def run(self, statement: str) -> str:
        """Run SQL from outside; returns what it says."""
        try:
            return repr(self._sql.execute(statement).fetchall())
        except sqlite3.Error as error:
            return str(error)


@pytest.mark.parametrize("profile", ["kvref", nightly("mysql-8.0"), nightly("mysql-5.6")])
@pytest.mark.parametrize("at_once", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_planned_commands_are_answered_as_by_steps(tmp_path: Path, profile: str, at_once: bool) -> None:
    """The same conversation by steps, with servers that keep no rows, a handful, all of them, and one of two processes."""
    chance = random.Random(profile)
    reloads = profile == "kvref"  # elsewhere no connection of before is answered
    every = [(STEPS, ()), *(("kvref", ("--set", f"row_cache_bytes={size}")) for size in SIZES)]
    if at_once:  # cas numbers are hidden, which two processes give in another order
        every.append(("kvref", TWO))
    with ExitStack() as stack:
        peers = [
            _Peer(
                stack.enter_context(
                    serving(_prepared(tmp_path / f"{number}"), "--profile", profile, *options, program=program)
                ),
                stack,
                hides_cas=at_once,
            )
            for number, (program, options) in enumerate(every)
        ]

        def compare(table: str) -> None:
            requests = f"SELECT {COLUMNS[table] if at_once else '*'} FROM {table} ORDER BY 1"
            # An expiry time is relative to the second in which a server received the command.
            rows = {re.sub(r"\b1[789]\d{8}\b", "later", peer.run(requests)) for peer in peers}
            assert len(rows) == 1, table

        def by_sql() -> bytes:
            statement = chance.choice(SQL)
            table = next((name for name in COLUMNS if f" {name} " in statement), "plain")
            compare(table)
            assert len({peer.run(statement) for peer in peers}) == 1, statement
            if reloads and chance.random() < 0.3:
                for peer in peers:
                    peer.reload()
            return table.encode()

        converse(chance, peers, [name.encode() for name, *_ in ROWS], 4 * settings().max_examples, by_sql)
        for table in COLUMNS:
            compare(table)
        counters, *others = [peer.counters() for peer in peers]
        assert others == [counters] * (len(every) - 1)


@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0", "mysql-5.6"])
def test_a_row_whose_key_is_a_blob_is_written_as_by_steps(tmp_path: Path, profile: str) -> None:
    """Which path takes a command behind others depends on the time that those take."""
    response = []
    for size, program in ((0, STEPS), (0, "kvref"), (1 << 20, "kvref")):
        options = "--profile", profile, "--set", f"row_cache_bytes={size}"
        path = _prepared(tmp_path / f"{size}{program}")
        with serving(path, *options, program=program) as served, ExitStack() as stack:
            peer = _Peer(served, stack)
            replies = []
            for table in ("plain", "western", "binary1"):
                peer.ask(0, b"bind %b\r\n" % table.encode())
                for request, reply in (
                    (b"set c 0 0 1\r\n2\r\n", b"STORED"),
                    (b"replace c 5 0 1\r\n2\r\n", b"STORED"),
                    (b"set c 5 100 1\r\n2\r\n", b"STORED"),
                    (b"incr c 1\r\n", b"2"),
                    (b"delete c\r\n", b"DELETED"),
                ):
                    peer.run(f"INSERT OR REPLACE INTO {table} (k, v) VALUES (x'63', '1')")
                    assert peer.ask(0, b"get c\r\n").startswith(b"VALUE c 0 1\r\n1\r\nEND\r\n")
                    assert peer.ask(0, request).startswith(reply + b"\r\n"), (table, request)
                    replies.append(peer.run(f"SELECT k, v FROM {table}"))
                    peer.run(f"DELETE FROM {table}")
            response.append(replies)
    assert response[0] == response[1] == response[2]


def test_what_sql_commits_is_shown_by_the_next_get(tmp_path: Path) -> None:
    with serving(_prepared(tmp_path / "file")) as served, ExitStack() as stack:
        peer = _Peer(served, stack)
        peer.ask(0, b"bind names\r\nset a 0 0 1\r\nv\r\nget a\r\n")
        for number in range(50):
            peer.run(f"UPDATE names SET v = 'n{number}' WHERE k = 'a'")
            value = b"n%d" % number
            shown = b"VALUE a 0 %d\r\n%b\r\nEND\r\n" % (len(value), value)
            assert peer.ask(0, b"get a\r\n").startswith(shown)
            assert peer.ask(0, b"get a\r\nget a\r\n").startswith(shown * 2)
        peer.run("DELETE FROM names")
        assert peer.ask(0, b"get a\r\n").startswith(b"END\r\n")


@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0", "mysql-5.6"])
def test_a_get_of_several_words_may_name_the_mapping_in_force(tmp_path: Path, profile: str) -> None:
    words = (
        b"a @@bytes1.b",
        b"@@bytes1.a b",
        b"@@bytes1.a @@bytes1.a a",
        b"a @@bytes1.none",
        b"a @@names.a b",
        b"a @@bytes1",
    )
    answers = []
    for number, program in enumerate((STEPS, "kvref")):
        store = _prepared(tmp_path / f"{number}")
        with serving(store, "--profile", profile, program=program) as served, served.connect() as client:
            for name, value in ((b"names", b"n"), (b"bytes1", b"1")):
                _ask(client, b"get @@%b\r\nset a 0 0 1\r\n%b\r\nset b 0 0 1\r\n2\r\n" % (name, value))
            lines = [b"%b %b\r\n" % (verb, each) for verb in (b"get", b"gets") for each in words]
            # Behind each, the mapping in force shows what it has switched.
            replies = [_ask(client, line + b"get a\r\n", 2) + _ask(client, b"get @@bytes1.b\r\n") for line in lines]
            answers.append((replies, _hits(client)))
    assert answers[0] == answers[1]
    if profile == "kvref":
        assert replies[0].startswith(b"VALUE a 0 1\r\n1\r\nVALUE @@bytes1.b 0 1\r\n2\r\nEND\r\n")


def _hits(client: socket.socket) -> int:
    return int(re.findall(rb"STAT get_hits (\d+)", _ask(client, b"stats\r\n"))[0])


def _ask(client: socket.socket, data: bytes, replies: int = 0) -> bytes:
    """Return so many replies; 0: one for each line of `data` that is a command."""
    client.sendall(data)
    response = b""
    while len(re.findall(rb"(?m)^(STORED|END|CLIENT_ERROR.*)\r$", response)) < (
        replies or len(re.findall(COMMAND, data))
    ):
        response += client.recv(1 << 16)
    return response


@pytest.mark.parametrize(
    ("mapping", "key", "appear"),
    [
        ("bytes1", b"a", "INSERT INTO bytes1 VALUES (x'61', x'76', 0, 0, 0)"),
        ("names", b"a", "INSERT INTO names VALUES ('A', 'v', 0, 0, 0)"),
        ("bytes1", b"a", b"set a 0 0 1\r\nv\r\n"),
        ("bytes1", b"a", b"add a 0 100 1\r\nv\r\n"),
        ("bytes1", b"a", b"ms a 1\r\nv\r\n"),
        ("bytes1", b"a", b"set @@bytes1.a 0 0 1\r\nv\r\n"),
        ("names", b"a", b"set A 0 0 1\r\nv\r\n"),
        ("names", b"a", b"bind names2\r\nset A 0 0 1\r\nv\r\nbind names\r\n"),
        ("plain2", b"a", "INSERT INTO plain VALUES ('k', 'v', 'a')"),
        ("numbers", b"1", b"set 01 0 0 1\r\nv\r\n"),
        ("ruled", b"a", b"set a 0 0 1\r\nv\r\n"),
    ],
)
def test_a_key_that_was_missing_appears(tmp_path: Path, mapping: str, key: bytes, appear: bytes | str) -> None:
    with serving(_prepared(tmp_path / "file")) as served, ExitStack() as stack:
        peer = _Peer(served, stack)
        peer.ask(0, b"bind %b\r\n" % mapping.encode())
        many = b"get other %b\r\n" % key
        for _ in range(3):
            assert peer.ask(0, b"get %b\r\n" % key).startswith(b"END\r\n")
            assert peer.ask(0, many).startswith(b"END\r\n")
            assert peer.ask(0, b"get %b\r\n" % key * 2).startswith(b"END\r\n" * 2)
        if isinstance(appear, str):
            peer.run(appear)
        else:
            peer.ask(1, b"bind %b\r\n%b" % (mapping.encode(), appear))
        for request in (b"get %b\r\n" % key, many, b"get %b\r\n" % key * 2):
            assert peer.ask(0, request).startswith(b"VALUE %b 0 1\r\nv\r\n" % key), request


def test_a_missing_key_that_is_cut_appears_with_the_row_of_what_is_left(tmp_path: Path) -> None:
    with serving(_prepared(tmp_path / "file"), "--profile", "mysql-8.0") as served, ExitStack() as stack:
        peer = _Peer(served, stack)
        peer.ask(0, b"bind short\r\n")
        long = b"k" * 25  # of a column of 20 characters
        for _ in range(3):
            assert peer.ask(0, b"get %b\r\n" % long).startswith(b"END\r\n")
        peer.ask(1, b"bind short\r\nset %b 0 0 1\r\nv\r\n" % long[:20])
        assert peer.ask(0, b"get %b\r\n" % long).startswith(b"VALUE %b 0 1\r\nv\r\n" % long)


def test_a_missing_key_appears_with_the_value_that_is_the_key(tmp_path: Path) -> None:
    path = _prepared(tmp_path / "file")
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("INSERT INTO containers VALUES ('own', 'test', 'short', 'k', 'k', 'f', '0', 'e', 'PRIMARY')")
    connection.close()
    with serving(path, "--profile", "mysql-8.0") as served, ExitStack() as stack:
        peer = _Peer(served, stack)
        peer.ask(0, b"bind own\r\n")
        for _ in range(3):
            assert peer.ask(0, b"get new\r\n").startswith(b"END\r\n")
        assert peer.ask(0, b"set a 0 0 3\r\nnew\r\n").startswith(b"STORED\r\n")
        assert peer.ask(0, b"get new\r\n").startswith(b"VALUE new 0 3\r\nnew\r\n")


def test_the_counter_of_cas_numbers_appears(tmp_path: Path) -> None:
    path = _prepared(tmp_path / "file")
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("CREATE TABLE kvref_counters (name VARCHAR(40) NOT NULL PRIMARY KEY, next INTEGER NOT NULL)")
        connection.execute(
            "INSERT INTO containers VALUES ('counters', 'test', 'kvref_counters', 'name', 'next', '0', '0', '0', 'PRIMARY')"
        )
    connection.close()
    with serving(path) as served, ExitStack() as stack:
        peer = _Peer(served, stack)
        peer.ask(0, b"bind counters\r\n")
        for _ in range(3):
            assert peer.ask(0, b"get cas\r\n").startswith(b"END\r\n")
        peer.ask(1, b"bind names\r\nset a 0 0 1\r\nv\r\n")
        assert peer.ask(0, b"get cas\r\n").startswith(b"VALUE cas 0 7\r\n1000001\r\n")


def test_a_set_of_another_spelling_is_seen_under_both(tmp_path: Path) -> None:
    with serving(_prepared(tmp_path / "file")) as served, ExitStack() as stack:
        peer = _Peer(served, stack)
        peer.ask(0, b"bind names\r\nset A 0 0 1\r\nv\r\n")
        assert b"\r\nv\r\n" in peer.ask(0, b"get A\r\n")
        peer.ask(0, b"set a 0 0 1\r\nw\r\n")
        for word in (b"A", b"a"):
            assert peer.ask(0, b"get %b\r\n" % word).startswith(b"VALUE %b 0 1\r\nw\r\nEND\r\n" % word)


def test_a_set_before_a_flush_of_the_same_packet_is_gone(tmp_path: Path) -> None:
    with serving(_prepared(tmp_path / "file")) as served, ExitStack() as stack:
        peer = _Peer(served, stack)
        peer.ask(0, b"bind names\r\n")
        peer.ask(0, b"set a 0 0 1\r\nv\r\nflush_all\r\n")
        for _ in range(3):
            assert peer.ask(0, b"get a\r\n").startswith(b"END\r\n")


def test_what_a_trigger_writes_elsewhere_is_shown(tmp_path: Path) -> None:
    with serving(_prepared(tmp_path / "file")) as served, ExitStack() as stack:
        peer = _Peer(served, stack)
        peer.ask(0, b"bind plain\r\nset a 0 0 1\r\nv\r\n")
        assert b"\r\nv\r\n" in peer.ask(0, b"get a\r\n")
        peer.ask(1, b"bind ruled\r\nset a 0 0 1\r\n1\r\nset a 0 0 1\r\n2\r\n")
        assert b"\r\nby trigger\r\n" in peer.ask(0, b"get a\r\n")


def test_what_a_flush_removes_with_the_commit_of_a_set_is_gone(tmp_path: Path) -> None:
    with serving(_prepared(tmp_path / "file")) as served, ExitStack() as stack:
        peer = _Peer(served, stack)
        peer.ask(0, b"bind plain\r\nset a 0 0 1\r\nv\r\n")
        assert peer.ask(0, b"set a 0 0 1\r\nw\r\nflush_all\r\n").startswith(b"STORED\r\nOK\r\n")
        for _ in range(2):
            assert peer.ask(0, b"get a\r\n").startswith(b"END\r\n")


def test_what_another_mapping_writes_with_the_same_commit_is_shown(tmp_path: Path) -> None:
    with serving(_prepared(tmp_path / "file")) as served, ExitStack() as stack:
        peer = _Peer(served, stack)
        sets = [b"set a 0 0 1\r\n1\r\n", b"bind names2\r\n", b"set a 0 0 1\r\n2\r\n", b"bind names\r\n"]
        for data in (b"".join(sets), b"".join(sets) + sets[0] + b"set A 0 0 1\r\n2\r\n"):
            peer.ask(0, b"bind names\r\nget a\r\n" + data)
            for _ in range(2):
                assert peer.ask(0, b"get a\r\n").startswith(b"VALUE a 0 1\r\n2\r\nEND\r\n")


def test_a_table_that_fits_no_more_is_noticed_by_the_next_get(tmp_path: Path) -> None:
    with serving(_prepared(tmp_path / "file")) as served, ExitStack() as stack:
        peer = _Peer(served, stack)
        peer.run("INSERT INTO plain VALUES ('a', 'v', 'o')")
        for _ in range(3):
            assert peer.ask(0, b"bind plain2\r\nget o\r\n").startswith(b"SUCCEED\r\nVALUE o 0 1\r\nv\r\nEND\r\n")
        assert peer.ask(0, b"get o\r\n").startswith(b"VALUE o")
        peer.run("DROP INDEX another")
        assert peer.ask(0, b"get o\r\n").startswith(b"SERVER_ERROR ")


@pytest.mark.parametrize("word", [b"k", b"@@plain.k"])  # the second one switches
@pytest.mark.parametrize("opcode", [0x00, 0x0A])
@pytest.mark.parametrize("apart", [False, True])
def test_the_reply_behind_a_quiet_set_waits_for_its_commit(
    tmp_path: Path, word: bytes, opcode: int, apart: bool
) -> None:
    table = "demo_test WHERE c1" if word == b"k" else "plain WHERE k"
    behind = frame(opcode, b"" if opcode == 0x0A else b"other")
    with serving(_prepared(tmp_path / "file")) as served, ExitStack() as stack, served.connect() as client:
        peer = _Peer(served, stack)
        for number in range(settings().max_examples):
            start = frame(0x00, b"@@aaa.other")
            client.sendall(start)
            client.recv(1 << 10)
            client.sendall(frame(0x11, word, bytes(8), b"%d" % number) + (b"" if apart else behind))
            if apart:
                client.sendall(behind)
            assert client.recv(1 << 10)[1] == opcode
            assert str(number) in peer.run(f"SELECT {'c2' if word == b'k' else 'v'} FROM {table} = 'k'")


def test_binary_gets_of_cached_rows_are_answered_and_counted_as_others(tmp_path: Path) -> None:
    """Alone in what arrives: of a row with flags, one that is expired, and keys without a row, from the second time on."""
    batches = [[(opcode, word)] for opcode in (0x00, 0x0C) for word in (b"k", b"old", b"none")]
    batches.append([(0x09, b"k"), (0x0D, b"none"), (0x0D, b"k"), (0x00, b"none"), (0x0A, b"")])
    response = []
    for program in (STEPS, "kvref"):
        with serving(_prepared(tmp_path / program), program=program) as served, ExitStack() as stack:
            peer = _Peer(served, stack, hides_cas=False)
            peer.ask(0, b"set k 7 0 1\r\nv\r\nset old 0 0 1\r\nv\r\n")
            peer.run("UPDATE demo_test SET c5 = 1 WHERE c1 = 'old'")
            replies: list[object] = []
            for _ in range(4):
                replies += [peer.exchange_frames([(*each, b"", b"") for each in batch], 0) for batch in batches]
            response.append((replies, peer.counters()))
    assert response[0] == response[1]


@pytest.mark.parametrize("program", [STEPS, "kvref"])
def test_an_mg_that_sets_a_time_and_shows_accesses_counts_as_one_itself(tmp_path: Path, program: str) -> None:
    """KV-MG-022."""
    with serving(_prepared(tmp_path / "file"), program=program) as served, ExitStack() as stack:
        peer = _Peer(served, stack)
        peer.run("UPDATE demo_test SET c2 = 'by SQL' WHERE c1 = 'AA'")
        assert peer.ask(0, b"mg AA h T1900000000\r\nmg AA h\r\n").startswith(b"HD h0\r\nHD h1\r\n")
        assert b" fetch=yes " in peer.ask(0, b"mg AA h T1900000001\r\nme AA\r\n")


@pytest.mark.parametrize("program", [STEPS, "kvref"])
def test_what_sql_writes_after_a_group_has_shown_accesses_is_another_item(tmp_path: Path, program: str) -> None:
    """KV-MG-022: SQL has stored the item, and no command has read that."""
    with serving(_prepared(tmp_path / "file"), program=program) as served, ExitStack() as stack:
        peer = _Peer(served, stack)
        peer.ask(0, b"get AA\r\n")
        assert b"HD h0\r\n" in peer.ask(0, b"set AA 0 0 1\r\n1\r\nmg AA h\r\n")
        peer.run("UPDATE demo_test SET c2 = 'by SQL' WHERE c1 = 'AA'")
        assert b"HD h0\r\n" in peer.ask(0, b"mg AA h\r\n")
