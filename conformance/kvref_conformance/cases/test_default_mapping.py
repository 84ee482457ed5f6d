"""Which mapping a new connection begins with: `containers` replaced, the endpoint reloaded, connections unbound.

The suite keeps a row `kvc-where` in each of its tables whose value is the table's name here: t1, t2 or t3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Setup, case, send, sql
from kvref_conformance.cases.phrases import map_table, unmap
from kvref_conformance.steps import Disconnect

if TYPE_CHECKING:
    from kvref_conformance.steps import Send

UNSORTED = Setup(containers=(("zeta", "t1"), ("beta", "t2"), ("gamma", "t3")))
NAMED = Setup(containers=(("alpha", "t1"), ("default", "t3"), ("zeta", "t2")))
BAD_FIRST = Setup(containers=(("alpha", None), ("beta", "t1"), ("gamma", "t2")))
CAPITAL = Setup(containers=(("Default", "t3"), ("alpha", "t2")))
BAD_DEFAULT = Setup(containers=(("default", None), ("gamma", "t1"), ("zeta", "t2")))
NUMBERS = Setup(containers=(("9", "t1"), ("10", "t2"), ("B", "t3")))
LETTERS = Setup(containers=(("b", "t1"), ("C", "t2"), ("A", "t3")))
LIKE_DEFAULT = Setup(containers=(("defaults", "t1"), ("alpha", "t2")))


def default_table(table: str, on: str = "a") -> Send:
    """Want a connection to be with that table."""
    return send("get kvc-where\r\n", f"VALUE kvc-where 0 2\r\n{table}\r\nEND\r\n", on=on)


CASES = (
    case("first-by-name", "KV-DEF-001 KV-DEF-012", default_table("t2"), setup=UNSORTED, bind=""),
    case(
        "every-new-connection",
        "KV-DEF-001",
        default_table("t2"),
        send("bind zeta\r\n", "SUCCEED\r\n"),
        default_table("t1"),
        default_table("t2", on="b"),
        Disconnect(),
        default_table("t2"),
        setup=UNSORTED,
        bind="",
    ),
    case(
        "no-alias",
        "KV-DEF-004",
        send("bind default\r\n", "NOT_FOUND\r\n"),
        send("get @@default.kvc-where\r\n", "END\r\n"),
        default_table("t2"),
        setup=UNSORTED,
        bind="",
    ),
    case(
        "default-by-its-name",
        "KV-DEF-001",
        send("get @@zeta.kvc-where\r\n", "VALUE @@zeta.kvc-where 0 2\r\nt1\r\nEND\r\n"),
        send("get @@beta.kvc-where\r\n", "VALUE @@beta.kvc-where 0 2\r\nt2\r\nEND\r\n"),
        setup=UNSORTED,
        bind="",
    ),
    case(
        "default-takes-writes",
        "KV-DEF-008",
        send("set {k} 0 0 1\r\nx\r\n", "STORED\r\n"),
        sql("SELECT c2 FROM {t2} WHERE c1 = '{k}'", ("x",)),
        sql("SELECT COUNT(*) FROM {t1} WHERE c1 = '{k}'", (0,)),
        setup=UNSORTED,
        bind="",
    ),
    case(
        "later-row-in-front",
        "KV-DEF-009",
        map_table("aaa0", "{t1}"),
        default_table("t2"),
        send("bind aaa0\r\n", "SUCCEED\r\n"),
        default_table("t1"),
        default_table("t2", on="b"),
        unmap("aaa0"),
        setup=UNSORTED,
        bind="",
    ),
    case("row-named-default", "KV-DEF-002", default_table("t3"), setup=NAMED, bind=""),
    case(
        "default-by-bind",
        "KV-DEF-002",
        send("bind alpha\r\n", "SUCCEED\r\n"),
        default_table("t1"),
        send("bind default\r\n", "SUCCEED\r\n"),
        default_table("t3"),
        setup=NAMED,
        bind="",
    ),
    case("bad-first-row", "KV-DEF-005 KV-CONT-021", default_table("t1"), setup=BAD_FIRST, bind=""),
    case(
        "bad-row-is-unknown",
        "KV-DEF-006",
        send("bind alpha\r\n", "NOT_FOUND\r\n"),
        send("get @@alpha.kvc-where\r\n", "END\r\n"),
        default_table("t1"),
        send("get @@gamma.kvc-where\r\n", "VALUE @@gamma.kvc-where 0 2\r\nt2\r\nEND\r\n"),
        setup=BAD_FIRST,
        bind="",
    ),
    case(
        "capital-default",
        "KV-DEF-003",
        default_table("t2"),
        send("get @@default.kvc-where\r\n", "VALUE @@default.kvc-where 0 2\r\nt3\r\nEND\r\n"),
        default_table("t2", on="b"),
        setup=CAPITAL,
        bind="",
    ),
    case(
        "bad-default-row",
        "KV-DEF-007 KV-CONT-022",
        default_table("t1"),
        send("bind default\r\n", "NOT_FOUND\r\n"),
        setup=BAD_DEFAULT,
        bind="",
    ),
    case("names-as-strings", "KV-DEF-010", default_table("t2"), setup=NUMBERS, bind=""),
    case("names-without-letter-case", "KV-DEF-010", default_table("t3"), setup=LETTERS, bind=""),
    case(
        "name-like-default",
        "KV-DEF-011",
        default_table("t2"),
        send("bind defaults\r\n", "SUCCEED\r\n"),
        default_table("t1"),
        setup=LIKE_DEFAULT,
        bind="",
    ),
)
