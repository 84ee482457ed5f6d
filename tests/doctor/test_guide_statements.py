"""The migration guide: what its tables say of kvref is what kvref does. A changed cell needs a changed test, and the reverse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import click
import pytest
from helpers.guide import AFTER_THE_PLUGIN, migration
from helpers.harness import Harness

import kvref
from kvref.cli import main
from kvref.server.settings import SETTINGS
from kvref.specification import requirements
from kvref_conformance.spec.entry import cases_of

GUIDE = migration() + AFTER_THE_PLUGIN.read_text()
# A row whose key differs from the demo row only in letter case, a column that is not mapped, a short value column, a trigger.
SHOP = (
    "CREATE TABLE shop (k VARCHAR(32) NOT NULL COLLATE NOCASE PRIMARY KEY, v VARCHAR(8), f INT, c BIGINT UNSIGNED,"
    " e INT, note INT)",
    "INSERT INTO shop VALUES ('Aa', '1', 0, 1, 0, 7)",
    "CREATE TRIGGER shop_v BEFORE INSERT ON shop WHEN NEW.v = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END",
    "UPDATE containers SET name = 'zzz'",
    "INSERT INTO containers VALUES ('shop', 'test', 'shop', 'k', 'v', 'f', 'c', 'e', 'PRIMARY')",
)
CUT, LONG = b"k" * 32, b"k" * 33
NOT_NUMERIC = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
STORED, END, HELLO = b"STORED\r\n", b"END\r\n", b"VALUE @@zzz.AA 8 12\r\nHELLO, HELLO\r\n"


class Shown(NamedTuple):
    """What a row of the table says of kvref's default profile, and what shows it.

    sent, kvref, plugin: a conversation, and its replies in the profiles `kvref` and `mysql-8.0`. sql: a query of the
    table `shop` after it, with its rows in both profiles. requirements: what the suite judges instead.
    """

    says: str
    sent: bytes = b""
    kvref: bytes = b""
    plugin: bytes = b""
    sql: tuple[str, object, object] | None = None
    requirements: tuple[str, ...] = ()


def value(key: bytes, data: bytes, flags: int = 0) -> bytes:
    return b"VALUE %b %d %d\r\n%b\r\n" % (key, flags, len(data), data)


ROWS = {
    "`incr` of a missing key": Shown("`NOT_FOUND`", b"incr n 1\r\n", b"NOT_FOUND\r\n", b"NOT_FOUND\r\n"),
    "`incr` of text": Shown(
        "`CLIENT_ERROR`, the value stays", b"set t 0 0 3\r\n7ab\r\nincr t 1\r\nget t\r\n",
        STORED + NOT_NUMERIC + value(b"t", b"7ab") + END, STORED + b"8\r\n" + value(b"t", b"8") + END,
    ),
    "value longer than its column": Shown(
        "`SERVER_ERROR`, and a `set` removes the old value", b"set Aa 0 0 9\r\n123456789\r\nget Aa\r\n",
        b"SERVER_ERROR object too large for cache: column v takes 8 characters\r\n" + END, STORED + value(b"Aa", b"12345678") + END,
    ),
    "key longer than its column": Shown(
        "`CLIENT_ERROR`", b"set %b 0 0 1\r\n1\r\nget %b\r\n" % (LONG, CUT),
        b"CLIENT_ERROR key too long for column k (32)\r\n" + END, STORED + value(CUT, b"1") + END,
    ),
    "bytes that are not text": Shown(
        "refused: make it BLOB or VARBINARY", b"set b 0 0 2\r\n1\xff\r\nget b\r\n",
        b"SERVER_ERROR column v holds utf8mb4 text, byte 1 of the data is none\r\n" + END,
        STORED + value(b"b", b"1") + END,
    ),
    "`delete`, `incr` of `@@name.key`": Shown(
        "on the named one", b"delete @@zzz.AA\r\nget @@zzz.AA\r\n",
        b"DELETED\r\n" + END, b"NOT_FOUND\r\n" + HELLO + END,
    ),
    "get of several keys with `@@`": Shown(
        "each from its table", b"get @@shop.Aa @@zzz.AA\r\n",
        value(b"@@shop.Aa", b"1") + HELLO + END, value(b"@@shop.Aa", b"1") + value(b"@@zzz.AA", b"1") + END,
    ),
    "columns that are not mapped": Shown(
        "kept", b"set Aa 0 0 1\r\n2\r\n", STORED, STORED, ("SELECT note FROM shop", [(7,)], [(None,)]),
    ),
    "key in other letter case (`_ci`)": Shown(
        "kept as it was", b"set aA 0 0 1\r\n2\r\n", STORED, STORED, ("SELECT k FROM shop", [("Aa",)], [("aA",)]),
    ),
    "`append`, `prepend`": Shown(
        "those of the row", b"set p 5 0 1\r\n1\r\nappend p 9 0 1\r\n2\r\nget p\r\n",
        STORED * 2 + value(b"p", b"12", 5) + END, STORED * 2 + value(b"p", b"12", 9) + END,
    ),
    "expiry below 0": Shown(
        "expired at once, as memcached 1.6", b"set e 0 -1 1\r\n1\r\nget e\r\n",
        STORED + END, b"CLIENT_ERROR Invalid expire time\r\nERROR\r\n" + END,
    ),
    "expired row": Shown(
        "no command sees it", b"set e 0 1 1\r\n1\r\n<100 s later>add e 0 0 1\r\n2\r\n", STORED * 2,
        STORED + b"NOT_STORED\r\n",
    ),
    "`flush_all N`, N > 0": Shown(
        "`CLIENT_ERROR`, nothing flushed", b"flush_all 100\r\nget Aa\r\n",
        b"CLIENT_ERROR delayed flush_all is not supported: send flush_all or flush_all 0\r\n" + value(b"Aa", b"1") + END,
        b"OK\r\n" + END,
    ),
    "`flush_all` where foreign keys refer to rows": Shown("`SERVER_ERROR`", requirements=("KV-FLUSH-018",)),
    "get of a row that SQL, or an open batch, has changed and not committed": Shown(
        "the committed value (level 1, the default)", requirements=("KV-ISO-011",),
    ),
    "waiting for a lock": Shown("`SERVER_ERROR lock wait timeout`", requirements=("KV-LOCK-030", "KV-LOCK-035")),
    "a write of a batch that fails": Shown("only this write fails", requirements=("KV-BATCH-020", "KV-LOCK-032")),
    "triggers, CHECK constraints": Shown(
        "they act; a refusal is `SERVER_ERROR`", b"set x 0 0 3\r\nbad\r\n",
        b"SERVER_ERROR no\r\n", b"NOT_STORED\r\n", requirements=("KV-TABLE-013",),
    ),
    "cas numbers after a restart": Shown("begin at the microsecond, so that one process uses none again", requirements=("KV-CAS-005",)),
    "`touch`, `gat`, meta commands": Shown(
        "as memcached 1.6", b"touch Aa 0\r\ngat 0 Aa\r\nmn\r\n",
        b"TOUCHED\r\n" + value(b"Aa", b"1") + END + b"MN\r\n", b"ERROR\r\n" * 3,
    ),
    "`version`": Shown(
        "`1.6.0+…-kvref`", b"version\r\n", b"VERSION 1.6.0+%b-kvref\r\n" % kvref.__version__.encode(),
        b"VERSION 8.0.33\r\n",
    ),
    "`stats`": Shown("the same names and more; sizes of memory are 0"),
}  # fmt: skip


def table(first: str) -> dict[str, list[str]]:
    """Return the other cells of each row of the guide's table whose first head is `first`."""
    text = re.search(rf"^\| {re.escape(first)} \|[^\n]*\n\|[-|]+\|\n((?:\|[^\n]*\n)+)", GUIDE, re.MULTILINE)
    assert text is not None
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in text[1].splitlines()]
    return {row[0]: row[1:] for row in rows}


NOTICED = table("what an application notices")
SETTLED = table("of the plugin")


def run(harness: Harness, sent: bytes) -> bytes:
    replies = b""
    for number, part in enumerate(sent.split(b"<100 s later>")):
        harness.now += 100 if number else 0
        replies += harness.say(part)
    return replies


def test_every_row_has_what_shows_it() -> None:
    assert {name: cells[-1] for name, cells in NOTICED.items()} == {name: row.says for name, row in ROWS.items()}


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.sent])
def test_replies(harness: Callable[..., Harness], name: str) -> None:
    row = ROWS[name]
    for number, (profile, replies) in enumerate((("kvref", row.kvref), ("mysql-8.0", row.plugin))):
        made = harness(profile, *SHOP)
        assert run(made, row.sent) == replies, profile
        if row.sql is not None:
            assert made.rows(row.sql[0]) == row.sql[1 + number], profile


@pytest.mark.parametrize("identifier", sorted({each for row in ROWS.values() for each in row.requirements}))
def test_a_requirement_that_shows_a_row_is_of_the_default_profile_and_judged(identifier: str) -> None:
    requirement = requirements.load()[identifier]
    assert "kvref" in requirement.profiles
    assert cases_of(identifier) or requirement.tests


def test_stats_has_the_names_of_the_plugin_and_no_sizes_of_memory(harness: Callable[..., Harness]) -> None:
    ours, theirs = (
        dict(line.split(b" ")[1:3] for line in harness(profile).say(b"stats\r\n").splitlines()[:-1])
        for profile in ("kvref", "mysql-8.0")
    )
    assert theirs.keys() < ours.keys()
    assert {ours[name] for name in (b"bytes", b"limit_maxbytes", b"engine_maxbytes")} == {b"0"}


@pytest.mark.parametrize("option", sorted(set(re.findall(r"`(--[a-z-]+)", " ".join(map(str, SETTLED.values()))))))
def test_an_option_that_takes_the_place_of_one_of_the_plugin_is_there(option: str) -> None:
    serve = main.get_command(click.Context(main), "serve")
    assert serve is not None
    assert option in {each for parameter in serve.params for each in parameter.opts}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`--set (\w+)=", GUIDE))))
def test_a_setting_that_the_guide_names_is_there(name: str) -> None:
    assert name in SETTINGS
