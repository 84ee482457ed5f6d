"""Checks from outside that no get over a database server is older than a commit that was answered before it.

A single thread takes random steps by SQL and by memcached and knows what each get must reply (`Stepper`); then several
threads write and read at once, and each reply must be between the last answered and the last begun write (`race`).

    PYTHONPATH=tests python -m helpers.row_cache_checker mariadb --seed 7 --seconds 300      # many quick steps; prints how many
"""

from __future__ import annotations

import json
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from typing import Any, Self

import click
import psutil
import pymysql

from helpers.database import database_or_skip, map_table, sql
from helpers.serving import Served, ask, ask_binary, ask_gets, receive_gets, serving
from helpers.waiting import until
from kvref_testbed.targets import SQLServer

# What is committed survives the end of the process, though not of the machine.
LOGGED = ["--server-id=1", "--log-bin=binlog", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2"]
OPTIONS = {
    "mysql-8.0": [*LOGGED, "--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
    "mysql-9.7": [*LOGGED, "--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
    "mariadb": [*LOGGED, "--binlog-format=ROW", "--log-slave-updates=ON"],
}
SERVE = ("--set", "row_cache_binlog=1")
KEYS = ["a", "b", "c", "d", "e", "f"]
FILL = 0.015  # seconds after which a row that was read is kept, whatever was written before
TEXT = "CHARACTER SET latin1 COLLATE latin1_swedish_ci"


NAMES = ("one", "two", "child", "number", "char", "binary", "small")
SLOW = 0.01  # share of the steps of a quick run that are those of a slow one
NUMBERS = (-(1 << 62), -3, 0, 7, 1 << 40)  # keys of the mapping `number`


class StaleError(AssertionError):
    """A get was answered with what is not, or no longer, there."""


def create_tables(database: SQLServer) -> None:
    """Create the mapped tables of the checker, empty."""
    map_table(
        database, "one", "v", f"k VARCHAR(20) {TEXT} PRIMARY KEY", f"u VARCHAR(20) {TEXT} UNIQUE", "v VARCHAR(200)"
    )
    sql(
        database,
        "INSERT INTO innodb_memcache.containers VALUES ('two', 'test', 'one', 'u', 'v', '0', '0', '0', 'u')",
        f"CREATE TABLE test.parent (k VARCHAR(20) {TEXT} PRIMARY KEY) ENGINE = InnoDB",
    )
    map_table(
        database, "child", "v", f"k VARCHAR(20) {TEXT} PRIMARY KEY", "v VARCHAR(200)",
        "FOREIGN KEY (k) REFERENCES parent (k) ON DELETE CASCADE ON UPDATE CASCADE",
    )  # fmt: skip
    map_table(
        database, "number", "v,w", "i BIGINT PRIMARY KEY", "c CHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci UNIQUE", "b VARBINARY(9) UNIQUE",
        "s SMALLINT UNSIGNED UNIQUE", "v VARCHAR(200)", "w VARCHAR(200)",
    )  # fmt: skip
    sql(
        database,
        *[
            f"INSERT INTO innodb_memcache.containers VALUES ('{name}', 'test', 'number', '{key}', '{values}', '0', '0', '0', '{key}')"
            for name, key, values in (("char", "c", "w"), ("binary", "b", "v"), ("small", "s", "w,v"))
        ],
    )
    map_table(database, "raced", "v", f"k VARCHAR(20) {TEXT} PRIMARY KEY", "v VARCHAR(200)")


def statistics(client: socket.socket) -> dict[str, int]:
    """Return the rows of `stats` about the row cache."""
    found = re.findall(rb"STAT row_cache_(\w+) (\d+)\r\n", ask(client, b"stats\r\n"))
    return {name.decode(): int(number) for name, number in found}


def local_dsn(database: SQLServer) -> str:
    """Return the DSN by which kvref compares cached rows with the files of the server's log, without queries."""
    return f"mysql://root@localhost/?unix_socket={database.socket}"


class Servers:
    """Processes of kvref over one database: each with its own cache, all killed and started again at any time.

    Args:
        options: of each.
        dsn: of the database.
    """

    def __init__(self, options: Sequence[tuple[str, ...]], dsn: str) -> None:
        self._dsn = dsn
        self._options = options
        self._stacks = [ExitStack() for _ in options]
        self._served = [self._start(number) for number in range(len(options))]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._stacks:
            each.close()

    def __len__(self) -> int:
        return len(self._served)

    def connect(self, number: int) -> socket.socket:
        """Return a connection to one of them that is closed with it."""
        return self._stacks[number].enter_context(self._served[number].connect())

    def kill(self, number: int) -> None:
        """Send SIGKILL to all processes of one of them, and start it again."""
        served = self._served[number]
        processes = [psutil.Process(served.process.pid), *psutil.Process(served.process.pid).children(recursive=True)]
        for each in processes:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        self._stacks[number].close()
        self._served[number] = self._start(number)

    def _start(self, number: int) -> Served:
        served = self._stacks[number].enter_context(serving(self._dsn, *self._options[number]))
        served.wait_for("following the binary log")
        return served


class Stepper:
    """Takes random steps and compares every reply.

    Args:
        database: with the tables of `create_tables`.
        connect: opens a connection to one of the servers.
        seed: of the steps.
        stack: closes the connections to the database.
        servers: which are compared, by numbers from 0.
        crashes: what kills one of the servers, None: nothing is killed.

    Attributes:
        compared: keys that were read and compared.
    """

    def __init__(
        self,
        database: SQLServer,
        connect: Callable[[int], socket.socket],
        seed: int,
        stack: ExitStack,
        servers: int = 1,
        crashes: Callable[[int], None] | None = None,
    ) -> None:
        self._random = random.Random(seed)
        self._database = database
        self._connect = connect
        self._servers = servers
        self._crashes = crashes
        self._stack = stack
        self._clients: dict[tuple[int, str, str], socket.socket] = {}
        self._connection, self._other = self._sql_connection(), self._sql_connection()
        self._open = False  # the other connection has written what is not committed
        self._patient = False  # a reply may be an error for a while
        self._rows: dict[str, list[str]] = {}  # by k: k, u, v
        self._children: dict[str, str] = {}
        self._numbers: dict[int, list[str]] = {}  # by i: v and w; what the other keys are follows from i
        self._number = 0
        self.compared = 0
        self._quick: list[Callable[[], None]] = [
            self._update, self._update, self._update, self._insert, self._insert, self._delete, self._rename_key,
            self._rename_other_key, self._set, self._set, self._several, self._roll_back, self._begin, self._finish,
            self._spell, self._cascade, self._cascade, self._change_number, self._change_number, self._change_number,
            self._set_number,
        ]  # fmt: skip
        self._steps = [*self._quick, self._truncate, self._alter, self._rename_table, self._flush, self._kill]
        self._sql(*[f"DELETE FROM test.{table}" for table in ("one", "parent", "number")])
        for name in NAMES:
            for server in range(servers):
                ask(self._client(server, name), b"get a\r\n")

    def move(self, database: SQLServer, switch: Callable[[], None]) -> None:
        """Go on with another database, which has all that was committed in this one; raises StaleError.

        Args:
            database: the other one.
            switch: waits until it has, and lets it take the place of this one.
        """
        self._finish()
        switch()
        self._database = database
        self._connection, self._other = self._sql_connection(), self._sql_connection()
        self._patient = True
        self.compare("failover")
        self._patient = False
        self._update()

    def crash(self) -> None:
        """Kill a server, or the database, and start it again."""
        assert self._crashes is not None
        self._finish()
        server = self._random.randrange(self._servers + 1)
        if server < self._servers:
            self._crashes(server)
            self._clients = {at: client for at, client in self._clients.items() if at[0] != server}
        else:
            self._database.kill()
            self._database.start()
            self._connection, self._other = self._sql_connection(), self._sql_connection()
            self._patient = True
        self.compare("crash")
        self._patient = False
        self._update()

    def _sql_connection(self) -> Any:
        connection = self._database.connect(60)

        def close() -> None:
            with suppress(pymysql.err.Error):  # it was lost
                connection.close()

        self._stack.callback(close)
        return connection

    def _client(self, server: int, name: str, use: str = "") -> socket.socket:
        at = server, name, use
        if at not in self._clients:
            client = self._clients[at] = self._connect(server)
            if use == "binary":
                ask_binary(client, [f"@@{name}".encode()])
            else:
                ask(client, f"bind {name}\r\n".encode())
        return self._clients[at]

    def _any(self, name: str, use: str = "") -> socket.socket:
        """Return a connection to one of the servers, another one for each use."""
        return self._client(self._random.randrange(self._servers), name, use)

    def run(self, steps: int, *, quick: bool = False) -> None:
        """Take some steps; raises StaleError.

        Args:
            steps: how many.
            quick: most steps neither wait nor change a definition; half of them only read one mapping, as do the others
                at their end.
        """
        name = "begin"
        for _ in range(steps):
            slow = not quick or self._random.random() < SLOW
            if slow or self._random.random() < 0.5:
                step = self._random.choice(self._steps if slow else self._quick)
                name = step.__name__
                self._overlapped(step)
            self.compare(name, NAMES if slow else self._random.sample(NAMES, 1))
            if slow and self._random.random() < 0.4:
                time.sleep(FILL)  # what was read is kept by then
                self.compare(name)
                self.compare(name)
        self._finish()
        self.compare("end")

    def _overlapped(self, step: Callable[[], None]) -> None:
        """Take a step while gets are under way, which may see what was there before it or after it."""
        name = self._random.choice(NAMES)
        client = self._any(name, "overlapped")
        client.sendall("".join(f"get {key}\r\n" for key in self._keys(name)).encode())
        step()
        ask(client, b"")

    def _keys(self, name: str) -> list[str]:
        others = {"number": str, "char": _char, "binary": _binary, "small": lambda i: str(_small(i))}
        return [others[name](i) for i in NUMBERS] if name in others else KEYS

    def compare(self, step: str, names: Sequence[str] = NAMES) -> None:
        """Read all rows of some mappings in one of the forms of a get; raises StaleError."""
        both_cases = self._random.random() < 0.3
        wanted = {
            "one": {key: row[2] for row in self._rows.values() for key in (row[0].lower(), row[0].upper())},
            "two": {key: row[2] for row in self._rows.values() for key in (row[1].lower(), row[1].upper())},
            "child": {key: value for k, value in self._children.items() for key in (k, k.upper())},
            "number": {str(i): f"{v}|{w}" for i, (v, w) in self._numbers.items()},
            "char": {_char(i): w for i, (_, w) in self._numbers.items()},
            "binary": {_binary(i): v for i, (v, _) in self._numbers.items()},
            "small": {str(_small(i)): f"{w}|{v}" for i, (v, w) in self._numbers.items()},
        }
        form = self._random.choice(("get", "get", "several", "gets", "named", "binary", "at once"))
        for name in names:
            read = self._keys(name)
            if read is KEYS and both_cases:
                read = [*KEYS, *[each.upper() for each in KEYS]]
            if form == "binary":
                self._compare_binary(step, name, self._any(name, form), read, wanted[name])
            elif form == "at once":
                self._compare_at_once(step, name, read, wanted[name])
            else:
                self._compare(step, form, name, self._any(name), read, wanted[name])
            self.compared += len(read)

    def _compare(
        self, step: str, form: str, name: str, client: socket.socket, keys: list[str], values: dict[str, str]
    ) -> None:
        begin, behind = (f"@@{name}." if form == "named" else ""), (" 0" if form == "gets" else "")
        items = [
            f"VALUE {begin}{key} 0 {len(values[key])}{behind}\r\n{values[key]}\r\n" if key in values else ""
            for key in keys
        ]
        if form in ("get", "named"):
            request = "".join(f"get {begin}{key}\r\n" for key in keys)
            right = "".join(f"{item}END\r\n" for item in items)
        else:
            request = f"{'gets' if form == 'gets' else 'get'} {' '.join(keys)}\r\n"
            right = "".join(items) + "END\r\n"
        reply = b""
        send = self._random.choice((ask, ask_gets))

        def answered() -> bool:
            nonlocal reply
            reply = send(client, request.encode())
            return not (self._patient and b"SERVER_ERROR" in reply)

        until(answered)
        if reply != right.encode():
            raise StaleError(f"after {step}, {form} of {name}: {reply!r}, not {right!r}")

    def _compare_at_once(self, step: str, name: str, keys: list[str], values: dict[str, str]) -> None:
        """Read each key by its own connection, so that a server finds several gets at once."""
        server = self._random.randrange(self._servers)
        clients = [self._client(server, name, f"{number} at once") for number in range(len(keys))]
        right = [
            f"VALUE {key} 0 {len(values[key])}\r\n{values[key]}\r\nEND\r\n" if key in values else "END\r\n"
            for key in keys
        ]
        replies: list[bytes] = []

        def answered() -> bool:
            for client, key in zip(clients, keys, strict=True):
                client.sendall(f"get {key}\r\n".encode())
            replies[:] = [receive_gets(client, 1) for client in clients]
            return not (self._patient and any(b"SERVER_ERROR" in each for each in replies))

        until(answered)
        if replies != [each.encode() for each in right]:
            raise StaleError(f"after {step}, gets at once of {name}: {replies}, not {right}")

    def _compare_binary(
        self, step: str, name: str, client: socket.socket, keys: list[str], values: dict[str, str]
    ) -> None:
        right = [values[key].encode() if key in values else None for key in keys]
        reply: list[bytes | None] = []

        def answered() -> bool:
            nonlocal reply
            try:
                reply = ask_binary(client, [key.encode() for key in keys])
            except ConnectionError:
                if not self._patient:
                    raise
                return False
            return True

        until(answered)
        if reply != right:
            raise StaleError(f"after {step}, binary gets of {name}: {reply!r}, not {right!r}")

    def _sql(self, *statements: str, other: bool = False) -> None:
        with (self._other if other else self._connection).cursor() as cursor:
            for each in statements:
                cursor.execute(each)

    def _value(self) -> str:
        self._number += 1
        return f"{self._number}"

    def _some(self) -> list[str] | None:
        return self._random.choice(list(self._rows.values())) if self._rows else None

    def _free(self, column: int) -> str | None:
        free = [key for key in KEYS if key not in {row[column].lower() for row in self._rows.values()}]
        return self._random.choice(free) if free else None

    def _update(self) -> None:
        if row := self._some():
            self._finish()
            row[2] = self._value()
            self._sql(f"UPDATE test.one SET v = '{row[2]}' WHERE k = '{row[0]}'")

    def _insert(self) -> None:
        self._finish()
        key, other = self._free(0), self._free(1)
        if key and other:
            row = self._rows[key] = [key, other, self._value()]
            self._sql("INSERT INTO test.one (k, u, v) VALUES ('{}', '{}', '{}')".format(*row))

    def _delete(self) -> None:
        if row := self._some():
            self._finish()
            del self._rows[row[0].lower()]
            self._sql(f"DELETE FROM test.one WHERE k = '{row[0]}'")

    def _change_number(self) -> None:
        """Insert, update, move or delete a row with keys of several types."""
        i, value = self._random.choice(NUMBERS), self._value()
        if i not in self._numbers:
            self._numbers[i] = [value, value + "w"]
            columns = f"{i}, '{_char(i)}', '{_binary(i)}', {_small(i)}"
            self._sql(f"INSERT INTO test.number VALUES ({columns}, '{value}', '{value}w')")
            return
        free = [each for each in NUMBERS if each not in self._numbers]
        what = self._random.choice(("update", "delete", "move"))
        if what == "delete":
            del self._numbers[i]
            self._sql(f"DELETE FROM test.number WHERE i = {i}")
        elif what == "move" and free:
            to = self._random.choice(free)
            self._numbers[to] = self._numbers.pop(i)
            keys = f"i = {to}, c = '{_char(to)}', b = '{_binary(to)}', s = {_small(to)}"
            self._sql(f"UPDATE test.number SET {keys} WHERE i = {i}")
        else:
            self._numbers[i][0] = value
            self._sql(f"UPDATE test.number SET v = '{value}' WHERE c = '{_char(i)}'")

    def _set_number(self) -> None:
        if self._numbers:
            i = self._random.choice(list(self._numbers))
            self._numbers[i] = [self._value(), self._value()]
            data = "|".join(self._numbers[i]).encode()
            received = ask(self._any("number"), b"set %d 0 0 %d\r\n%s\r\n" % (i, len(data), data))
            assert received == b"STORED\r\n", received

    def _rename_key(self) -> None:
        self._finish()
        row, key = self._some(), self._free(0)
        if row and key:
            del self._rows[row[0].lower()]
            self._sql(f"UPDATE test.one SET k = '{key}' WHERE k = '{row[0]}'")
            self._rows[key] = [key, *row[1:]]

    def _rename_other_key(self) -> None:
        self._finish()
        row, key = self._some(), self._free(1)
        if row and key:
            self._sql(f"UPDATE test.one SET u = '{key}' WHERE k = '{row[0]}'")
            row[1] = key

    def _spell(self) -> None:
        """Give a key another spelling, which the collation takes for the same."""
        if row := self._some():
            self._finish()
            row[0] = row[0].swapcase()
            self._sql(f"UPDATE test.one SET k = '{row[0]}', v = '{row[2]}' WHERE k = '{row[0]}'")

    def _set(self) -> None:
        if row := self._some():
            self._finish()
            row[2] = self._value()
            received = ask(
                self._any("two"), b"set %s 0 0 %d\r\n%s\r\n" % (row[1].encode(), len(row[2]), row[2].encode())
            )
            assert received == b"STORED\r\n", received

    def _several(self) -> None:
        self._finish()
        value = self._value()
        self._sql(
            "BEGIN",
            f"UPDATE test.one SET v = '{value}'",
            "SAVEPOINT x",
            "DELETE FROM test.one",
            "ROLLBACK TO x",
            "COMMIT",
        )
        for row in self._rows.values():
            row[2] = value

    def _roll_back(self) -> None:
        self._finish()
        self._sql("BEGIN", "UPDATE test.one SET v = 'never'")
        self.compare("roll_back")
        self._sql("ROLLBACK")

    def _begin(self) -> None:
        """Leave a transaction open on the other connection."""
        if not self._open and self._rows:
            self._sql("BEGIN", "UPDATE test.one SET v = CONCAT(v, 'x')", other=True)
            self._open = True

    def _finish(self) -> None:
        """Commit what is open, or roll it back."""
        if self._open:
            commits = self._random.random() < 0.7
            self._sql("COMMIT" if commits else "ROLLBACK", other=True)
            self._open = False
            for row in self._rows.values() if commits else ():
                row[2] += "x"
            self.compare("finish")

    def _truncate(self) -> None:
        if self._random.random() < 0.3:
            self._finish()
            self._sql("TRUNCATE TABLE test.one")
            self._rows.clear()

    def _alter(self) -> None:
        """Give all rows the default of a new column, in another place, by a statement that changes no row."""
        self._finish()
        value = self._value()
        self._sql(f"ALTER TABLE test.one DROP COLUMN v, ADD COLUMN v VARCHAR(200) NOT NULL DEFAULT '{value}' FIRST")
        for row in self._rows.values():
            row[2] = value

    def _rename_table(self) -> None:
        self._finish()
        self._sql(
            "DROP TABLE IF EXISTS test.spare",
            "CREATE TABLE test.spare LIKE test.one",
            "INSERT INTO test.spare SELECT * FROM test.one",
            "UPDATE test.spare SET v = CONCAT(v, 'r')",
            "RENAME TABLE test.one TO test.gone, test.spare TO test.one",
            "DROP TABLE test.gone",
        )
        for row in self._rows.values():
            row[2] += "r"

    def _flush(self) -> None:
        if self._random.random() < 0.3:
            self._finish()
            assert ask(self._any("one"), b"flush_all\r\n") == b"OK\r\n"
            self._rows.clear()

    def _kill(self) -> None:
        """End the connection of the follower, and change rows before it is back."""
        with self._connection.cursor() as cursor:
            cursor.execute("SHOW PROCESSLIST")
            for number, *_, command, _, _, _ in [row[:8] for row in cursor.fetchall()]:
                if str(command).startswith("Binlog Dump"):
                    with suppress(pymysql.err.OperationalError):  # that of a process that was killed may end by itself
                        cursor.execute(f"KILL {number}")
        self._update()
        self.compare("kill")
        self._update()
        time.sleep(0.2)  # the follower is back by then, or is not

    def _cascade(self) -> None:
        """Change a row that others refer to, or add one."""
        key = self._random.choice(KEYS)
        free = [each for each in KEYS if each not in self._children]
        if key in self._children and free and self._random.random() < 0.5:
            to = self._random.choice(free)
            self._sql(f"UPDATE test.parent SET k = '{to}' WHERE k = '{key}'")
            self._children[to] = self._children.pop(key)
        elif key in self._children:
            self._sql(f"DELETE FROM test.parent WHERE k = '{key}'")
            del self._children[key]
        else:
            self._children[key] = self._value()
            self._sql(
                f"INSERT INTO test.parent VALUES ('{key}')",
                f"INSERT INTO test.child VALUES ('{key}', '{self._children[key]}')",
            )


def _char(i: int) -> str:
    return f"\u00fc{NUMBERS.index(i)}"


def _binary(i: int) -> str:
    return f"b{NUMBERS.index(i)}b"


def _small(i: int) -> int:
    """Return a key without a sign, some beyond the largest one with a sign."""
    return 65535 - 16000 * NUMBERS.index(i)


# Return the values of keys, read by the connections.
Reads = Callable[[list[socket.socket], list[str]], list[int]]


def _text_values(clients: list[socket.socket], keys: list[str]) -> list[int]:
    return _numbers(ask_gets(clients[0], f"get {' '.join(keys)}\r\n".encode()))


def _binary_values(clients: list[socket.socket], keys: list[str]) -> list[int]:
    reply = ask_binary(clients[0], [key.encode() for key in keys])
    return [int(value) for value in reply if value is not None and value.isdigit()]


def _values_at_once(clients: list[socket.socket], keys: list[str]) -> list[int]:
    """Read each key by its own connection, so that a server finds several gets at once."""
    for client, key in zip(clients, keys, strict=False):
        client.sendall(f"get {key}\r\n".encode())
    return [value for client, _ in zip(clients, keys, strict=False) for value in _numbers(receive_gets(client, 1))]


def _numbers(reply: bytes) -> list[int]:
    return [int(value) for value in reply.split(b"\r\n")[1:-2:2] if value.isdigit()]


def _bound(client: socket.socket, reads: Reads) -> socket.socket:
    reads([client], ["@@raced"])
    return client


def _reader(number: int, keys: list[str]) -> tuple[Reads, list[list[str]]]:
    """Return how a thread reads, and what at a time: one key, all keys, all by binary gets, or by many gets at once."""
    kinds: list[tuple[Reads, list[list[str]]]] = [
        (_text_values, [[key] for key in keys]),
        (_text_values, [keys]),
        (_binary_values, [keys]),
        (_values_at_once, [keys * 6]),
    ]
    return kinds[number % len(kinds)]


def race(database: SQLServer, served: Served, seconds: float, readers: int = 4) -> int:
    """Write and read at once for some seconds; return the number of gets that were compared.

    Raises:
        StaleError: a reply is older than a write that was answered before, or no value that was ever written.
    """
    keys = ["r1", "r2", "r3"]
    begun, answered = dict.fromkeys(keys, 0), dict.fromkeys(keys, 0)
    sql(database, "DELETE FROM test.raced", *[f"INSERT INTO test.raced VALUES ('{key}', '0')" for key in keys])
    stop, failures, compared = threading.Event(), [], [0] * readers

    def writing(key: str) -> None:
        with closing(database.connect(60)) as connection, connection.cursor() as cursor, served.connect() as client:
            ask(client, b"bind raced\r\n")
            while not stop.is_set():
                begun[key] += 1
                value = str(begun[key])
                if key == "r1":
                    assert ask(client, b"set r1 0 0 %d\r\n%s\r\n" % (len(value), value.encode())) == b"STORED\r\n"
                else:
                    cursor.execute(f"UPDATE test.raced SET v = '{value}' WHERE k = '{key}'")
                answered[key] = begun[key]
                time.sleep(random.choice((0, 0.002, 0.02)))  # so that rows are cached between some writes

    def reading(number: int) -> None:
        reads, groups = _reader(number, keys)
        with ExitStack() as stack:
            clients = [_bound(stack.enter_context(served.connect()), reads) for _ in groups[0]]
            while not stop.is_set():
                for group in groups:
                    least = [answered[key] for key in group]
                    values = reads(clients, group)
                    assert len(values) == len(group), values
                    for key, first, value in zip(group, least, values, strict=True):
                        if not first <= value <= begun[key]:
                            raise StaleError(f"race: {key} is {value}, not from {first} to {begun[key]}")
                    compared[number] += len(group)

    def guarded(work: Callable[[Any], None], argument: object) -> None:
        try:
            work(argument)
        except Exception as error:  # noqa: BLE001 - raised in the thread of the test
            failures.append(error)
            stop.set()

    threads = [threading.Thread(target=guarded, args=(writing, key)) for key in keys]
    threads += [threading.Thread(target=guarded, args=(reading, number)) for number in range(readers)]
    _let_run(threads, stop, seconds)
    if failures:
        raise failures[0]
    return sum(compared)


def _let_run(threads: list[threading.Thread], stop: threading.Event, seconds: float) -> None:
    for each in threads:
        each.start()
    stop.wait(seconds)
    stop.set()
    for each in threads:
        each.join()


# Processes of a quick run. The last one takes no fast path, because of its batches.
QUICK = (
    SERVE,
    ("--set", "row_cache_binlog=1", "--set", "innodb_api_trx_level=2"),
    (*SERVE, "--set", "daemon_memcached_r_batch_size=100"),
)


@click.command(help="Take quick steps on several processes over a database, until the time is over or a get is stale.")
@click.argument("server", type=click.Choice(list(OPTIONS)))
@click.option("--seed", default=0, show_default=True, help="Of the steps.")
@click.option("--seconds", default=60.0, show_default=True, help="Time to run.")
@click.option(
    "--processes", default=2, show_default=True, type=click.IntRange(1, len(QUICK)), help="Processes of kvref."
)
@click.option("--crash-every", default=20_000, show_default=True, help="Steps between two kills; 0: none.")
@click.option("--file-bytes", default=1 << 30, show_default=True, help="After which the log begins a new file.")
@click.option("--local", is_flag=True, help="Through the Unix socket, so that the files of the log are read.")
def main(
    server: str, seed: int, seconds: float, processes: int, crash_every: int, file_bytes: int, *, local: bool
) -> None:
    """Print as JSON what was compared; raises StaleError."""
    hits, done, crashes = 0, 0, 0
    with database_or_skip(server, [*OPTIONS[server], f"--max-binlog-size={file_bytes}"]) as database:
        create_tables(database)
        dsn = local_dsn(database) if local else database.dsn
        with Servers(QUICK[:processes], dsn) as servers, ExitStack() as stack:
            stepper = Stepper(database, servers.connect, seed, stack, processes, servers.kill)
            began = time.monotonic()
            while time.monotonic() < began + seconds:
                stepper.run(1000, quick=True)
                done += 1000
                if crash_every and done % crash_every == 0:
                    hits += sum(statistics(servers.connect(each))["hits"] for each in range(processes))
                    stepper.crash()
                    hits -= sum(statistics(servers.connect(each)).get("hits", 0) for each in range(processes))
                    crashes += 1
            taken = time.monotonic() - began
            hits += sum(statistics(servers.connect(each))["hits"] for each in range(processes))
    found = {
        "server": database.version, "seed": seed, "local": local, "steps": done, "rate": round(done / taken),
        "keys": stepper.compared, "cached": hits, "crashes": crashes,
    }  # fmt: skip
    click.echo(json.dumps(found))


if __name__ == "__main__":
    main()
