"""Which mapping a new connection begins with: `containers` replaced, the endpoint reloaded, connections unbound.

The suite keeps a row `kvc-where` in each of its tables whose value is the table's name here: t1, t2 or t3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Setup, case, say, sql
from kvref_conformance.cases.phrases import row_added, row_removed
from kvref_conformance.steps import Disconnect

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Send

UNSORTED = Setup(containers=(("zeta", "t1"), ("beta", "t2"), ("gamma", "t3")))
NAMED = Setup(containers=(("alpha", "t1"), ("default", "t3"), ("zeta", "t2")))
BAD_FIRST = Setup(containers=(("alpha", None), ("beta", "t1"), ("gamma", "t2")))
CAPITAL = Setup(containers=(("Default", "t3"), ("alpha", "t2")))
BAD_DEFAULT = Setup(containers=(("default", None), ("gamma", "t1"), ("zeta", "t2")))
NUMBERS = Setup(containers=(("9", "t1"), ("10", "t2"), ("B", "t3")))
LETTERS = Setup(containers=(("b", "t1"), ("C", "t2"), ("A", "t3")))
LIKE_DEFAULT = Setup(containers=(("defaults", "t1"), ("alpha", "t2")))


def begins_with(table: str, on: str = "a") -> Send:
    """Want a connection to be with that table."""
    return say("get kvc-where\r\n", f"VALUE kvc-where 0 2\r\n{table}\r\nEND\r\n", on=on)


CASES = (
    case("first-by-name", "KV-DEF-001 KV-DEF-012", begins_with("t2"), setup=UNSORTED, bind=""),
    case(
        "every-new-connection",
        "KV-DEF-001",
        begins_with("t2"),
        say("bind zeta\r\n", "SUCCEED\r\n"),
        begins_with("t1"),
        begins_with("t2", on="b"),
        Disconnect(),
        begins_with("t2"),
        setup=UNSORTED,
        bind="",
    ),
    case(
        "no-alias",
        "KV-DEF-004",
        say("bind default\r\n", "NOT_FOUND\r\n"),
        say("get @@default.kvc-where\r\n", "END\r\n"),
        begins_with("t2"),
        setup=UNSORTED,
        bind="",
    ),
    case(
        "default-by-its-name",
        "KV-DEF-001",
        say("get @@zeta.kvc-where\r\n", "VALUE @@zeta.kvc-where 0 2\r\nt1\r\nEND\r\n"),
        say("get @@beta.kvc-where\r\n", "VALUE @@beta.kvc-where 0 2\r\nt2\r\nEND\r\n"),
        setup=UNSORTED,
        bind="",
    ),
    case(
        "default-takes-writes",
        "KV-DEF-008",
        say("set {k} 0 0 1\r\nx\r\n", "STORED\r\n"),
        sql("SELECT c2 FROM {t2} WHERE c1 = '{k}'", ("x",)),
        sql("SELECT COUNT(*) FROM {t1} WHERE c1 = '{k}'", (0,)),
        setup=UNSORTED,
        bind="",
    ),
    case(
        "later-row-in-front",
        "KV-DEF-009",
        row_added("aaa0", "{t1}"),
        begins_with("t2"),
        say("bind aaa0\r\n", "SUCCEED\r\n"),
        begins_with("t1"),
        begins_with("t2", on="b"),
        row_removed("aaa0"),
        setup=UNSORTED,
        bind="",
    ),
    case("row-named-default", "KV-DEF-002", begins_with("t3"), setup=NAMED, bind=""),
    case(
        "default-by-bind",
        "KV-DEF-002",
        say("bind alpha\r\n", "SUCCEED\r\n"),
        begins_with("t1"),
        say("bind default\r\n", "SUCCEED\r\n"),
        begins_with("t3"),
        setup=NAMED,
        bind="",
    ),
    case("bad-first-row", "KV-DEF-005 KV-CONT-021", begins_with("t1"), setup=BAD_FIRST, bind=""),
    case(
        "bad-row-is-unknown",
        "KV-DEF-006",
        say("bind alpha\r\n", "NOT_FOUND\r\n"),
        say("get @@alpha.kvc-where\r\n", "END\r\n"),
        begins_with("t1"),
        say("get @@gamma.kvc-where\r\n", "VALUE @@gamma.kvc-where 0 2\r\nt2\r\nEND\r\n"),
        setup=BAD_FIRST,
        bind="",
    ),
    case(
        "capital-default",
        "KV-DEF-003",
        begins_with("t2"),
        say("get @@default.kvc-where\r\n", "VALUE @@default.kvc-where 0 2\r\nt3\r\nEND\r\n"),
        begins_with("t2", on="b"),
        setup=CAPITAL,
        bind="",
    ),
    case(
        "bad-default-row",
        "KV-DEF-007 KV-CONT-022",
        begins_with("t1"),
        say("bind default\r\n", "NOT_FOUND\r\n"),
        setup=BAD_DEFAULT,
        bind="",
    ),
    case("names-as-strings", "KV-DEF-010", begins_with("t2"), setup=NUMBERS, bind=""),
    case("names-without-letter-case", "KV-DEF-010", begins_with("t3"), setup=LETTERS, bind=""),
    case(
        "name-like-default",
        "KV-DEF-011",
        begins_with("t2"),
        say("bind defaults\r\n", "SUCCEED\r\n"),
        begins_with("t1"),
        setup=LIKE_DEFAULT,
        bind="",
    ),
)


def test_default_mapping(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
