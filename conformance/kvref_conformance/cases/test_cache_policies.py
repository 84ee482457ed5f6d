"""Cache policies: the effect of get, set, delete and flush on the table and on the memory cache.

{k} is an unused key; a row is always one of {t1} or {t2}. Numbers are followed by a blank if the plugin would read on
in its memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.case import Setup, Shape, case, say, sql
from kvref_conformance.cases.phrases import OPTIONS, answered, misses, shows, stored
from kvref_conformance.steps import Pause, Reload

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Send, Sql


def policies(get: str, set_: str = "", delete: str = "", flush: str = "", name: str = "cache_policy") -> Setup:
    """Return the setup of one row; what is not named is as the one before it."""
    set_ = set_ or get
    delete = delete or set_
    return Setup(policies=((name, get, set_, delete, flush or delete),))


CACHING, CACHE = policies("caching"), policies("cache_only", name="other")
GET_TABLE: Final = policies("innodb_only", "cache_only", "caching", "cache_only")
SET_TABLE: Final = policies("caching", "innodb_only", "disabled")
SET_BOTH: Final = policies("cache_only", "caching", "innodb_only")
DELETE_CACHE: Final = policies("caching", "caching", "cache_only")
TIMES: Final = policies("innodb_only", "caching", "innodb_only")
USUAL_ROW: Final = ("cache_policy", *["innodb_only"] * 4)
OFF: Final = Setup(policies=(("a_first", *["disabled"] * 4), USUAL_ROW))
TWO: Final = Setup(
    policies=(("cache_policy", "innodb_only", "disabled", *["innodb_only"] * 2), ("z_last", *["disabled"] * 4))
)


def in_table(value: str | None, table: str = "t1", key: str = "{k}") -> Sql:
    """Want that value in the row of a table, or no row."""
    rows = () if value is None else ((value,),)
    return sql(f"SELECT c2 FROM {{{table}}} WHERE c1 = '{key}'", *rows)  # noqa: S608 - a template


def by_sql(value: str, table: str = "t1", key: str = "{k}") -> Sql:
    """Insert a row."""
    return sql(f"INSERT INTO {{{table}}} VALUES ('{key}', '{value}', 0, 0, 0)")  # noqa: S608 - a template


def updated(value: str) -> Sql:
    """Change the row of {t1}."""
    return sql(f"UPDATE {{t1}} SET c2 = '{value}' WHERE c1 = '{{k}}'")  # noqa: S608 - a template


def deleted(word: str = "{k}", answer: str = "DELETED") -> Send:
    """Delete a word and want that answer."""
    return say(f"delete {word}\r\n", f"{answer}\r\n")


ROW_GONE: Final = sql("DELETE FROM {t1} WHERE c1 = '{k}'")
FLUSHED: Final = say("flush_all\r\n", "OK\r\n", patience=12)

IN_CACHE = (
    case("cache-only-get", "KV-POLICY-010", by_sql("x"), misses("{k}"), setup=CACHE),
    case("cache-only-set", "KV-POLICY-011", stored("{k}", "x"), shows("{k}", "x"), in_table(None), setup=CACHE),
    case("cache-only-shared", "KV-POLICY-012", stored("{k}", "x"), shows("{k}", "x", on="b"), setup=CACHE),
    case(
        "cache-only-conditions",
        "KV-POLICY-013",
        by_sql("row"),
        *(answered("{k}", "x", "NOT_STORED\r\n", verb) for verb in ("replace", "append", "prepend")),
        say("cas {k} 0 0 1 1\r\nx\r\n", "NOT_FOUND\r\n"),
        say("incr {k} 1\r\n", "NOT_FOUND\r\n"),
        stored("{k}", "x", "add"), answered("{k}", "y", "NOT_STORED\r\n", "add"), stored("{k}", "y", "replace"),
        shows("{k}", "y"), in_table("row"),
        setup=CACHE,
    ),
    case(
        "cache-only-delete",
        "KV-POLICY-014",
        by_sql("row"),
        deleted(answer="NOT_FOUND"), stored("{k}", "x"), deleted(), misses("{k}"), in_table("row"),
        setup=CACHE,
    ),
    case(
        "cache-only-flush", "KV-POLICY-015", by_sql("r"), stored("{k}", "x"), FLUSHED, misses("{k}"), in_table("r"),
        setup=CACHE,
    ),
    case(
        "cache-only-cas",
        "KV-POLICY-016",
        stored("{k}", "x"),
        say("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"),
        *(say(f"cas {{k}} 0 0 1 {{a}}\r\n{v}\r\n", f"{said}\r\n") for v, said in (("y", "STORED"), ("z", "EXISTS"))),
        shows("{k}", "y"),
        setup=CACHE,
    ),
    case(
        "cache-only-time",
        "KV-POLICY-017",
        say("set {k} 0 1000000000 1\r\nx\r\n", "STORED\r\n"),
        misses("{k}"),
        say("set {k} 0 2592000 1\r\nx\r\n", "STORED\r\n"),
        shows("{k}", "x"),
        say("set {k} 0 1 1\r\nx\r\n", "STORED\r\n"),
        Pause(1.3),
        misses("{k}"),
        stored("{k}", "y", "add"),
        setup=CACHE,
    ),
    case(
        "cache-only-time-from-start",
        "KV-POLICY-018",
        say("set {k} 0 1 1\r\nx\r\n", "STORED\r\n"),
        misses("{k}"),
        say("set {k} 0 1000000000 1\r\nx\r\n", "STORED\r\n"),
        shows("{k}", "x"),
        setup=CACHE,
    ),
    case(
        "cache-only-flags",
        "KV-POLICY-019",
        stored("{k}", "12 ", flags=4294967295),
        shows("{k}", "12 ", flags=4294967295),
        setup=CACHE,
    ),
    case(
        "cache-only-flags-of-append",
        "KV-POLICY-050",
        stored("{k}", "12 ", flags=4294967295),
        answered("{k}", "x", "STORED\r\n", "append", flags=7),
        say("get {k}\r\n", tuple(f"VALUE {{k}} 4294967295 {len(v)}\r\n{v}\r\nEND\r\n" for v in ("12 x", "1x"))),
        setup=CACHE,
    ),
    case(
        "cache-only-flags-of-incr",
        "KV-POLICY-050",
        stored("{k}", "10 ", flags=4294967295),
        say("incr {k} 5\r\n", "15\r\n"),
        say(
            "get {k}\r\n",
            tuple(f"VALUE {{k}} 4294967295 {len(v)}\r\n{v}\r\nEND\r\n" for v in ("15", "15 ", "15\r\n")),
        ),
        setup=CACHE,
    ),
    *(
        case(
            f"cache-only-sum-{name}", "KV-POLICY-020", stored("{k}", value), say(f"{verb}\r\n", f"{answer}\r\n"),
            setup=CACHE,
        )
        for name, value, verb, answer in (
            ("incr", "10 ", "incr {k} 5", "15"),
            ("decr", "10 ", "decr {k} 11", "0"),
            ("top", "10 ", "incr {k} 18446744073709551615", "9"),
        )
    ),
    case(
        "cache-only-text", "KV-POLICY-051", stored("{k}", "abc "),
        say("incr {k} 1\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
        shows("{k}", "abc "),
        setup=CACHE,
    ),
    case(
        "cache-only-sum-left", "KV-POLICY-021", stored("{k}", "10 "), say("incr {k} 5\r\n", "15\r\n"),
        shows("{k}", "15"),
        setup=CACHE,
    ),
    case(
        "cache-only-append", "KV-POLICY-022", stored("{k}", "abcd"), stored("{k}", "ef", "append"),
        shows("{k}", "abcdef"),
        setup=CACHE,
    ),
    case(
        "cache-only-prepend", "KV-POLICY-022", stored("{k}", "abcd"), stored("{k}", "efgh", "prepend"),
        shows("{k}", "efghabcd"),
        setup=CACHE,
    ),
    case(
        "cache-only-any-word",
        "KV-POLICY-023",
        misses("@@{m2}"), stored("@@{m2}.{k}", "x"), misses("{k}"), shows("@@{m2}.{k}", "x"), misses("{k}"),
        setup=CACHE,
    ),
    case(
        "cache-only-switch",
        "KV-POLICY-024 KV-POLICY-053",
        stored("@@{m2}.{k}", "2"), shows("{k}", "2"), stored("@@{m1}.{k}", "1"), shows("{k}", "1"),
        shows("@@{m2}.{k}", "2"), in_table(None, "t2"),
        setup=CACHE,
    ),
)  # fmt: skip

IN_BOTH = (
    case("caching-set", "KV-POLICY-025", stored("{k}", "x"), in_table("x"), shows("{k}", "x"), setup=CACHING),
    case(
        "caching-hit", "KV-POLICY-026 KV-POLICY-012", stored("{k}", "x"), updated("sql"), shows("{k}", "x"), ROW_GONE,
        shows("{k}", "x", on="b"), stored("{k}", "y"), shows("{k}", "y"),
        setup=CACHING,
    ),
    case(
        "caching-miss", "KV-POLICY-027 KV-POLICY-009", by_sql("x"), shows("{k}", "x"), updated("y"), shows("{k}", "y"),
        setup=CACHING,
    ),
    case(
        "caching-delete", "KV-POLICY-028", stored("{k}", "x"), deleted(), misses("{k}"), in_table(None), by_sql("row"),
        deleted(), in_table(None), deleted(answer="NOT_FOUND"),
        setup=CACHING,
    ),
    case(
        "caching-delete-row-gone", "KV-POLICY-028", stored("{k}", "x"), ROW_GONE, deleted(), misses("{k}"),
        setup=CACHING,
    ),
    case(
        "caching-flush", "KV-POLICY-029", stored("{k}", "x"), FLUSHED, misses("{k}"), in_table(None),
        setup=CACHING,
    ),
    case(
        "caching-refused-add", "KV-POLICY-030", by_sql("row"), answered("{k}", "new", "NOT_STORED\r\n", "add"),
        shows("{k}", "row"),
        setup=CACHING,
    ),
    case(
        "caching-refused-replace", "KV-POLICY-030", stored("{k}", "old"), ROW_GONE,
        answered("{k}", "new", "NOT_STORED\r\n", "replace"), shows("{k}", "old"),
        setup=CACHING,
    ),
    case(
        "caching-cut", "KV-POLICY-031", stored("{k}", "vwxyzvwxyz"), shows("{k}", "vwxyzvwxyz"),
        sql("SELECT v FROM {t}", ("vwxyz",)),
        setup=CACHING, shape=Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(5), {OPTIONS}"),
    ),
    case(
        "caching-one-row", "KV-POLICY-032", stored("@@{m1}.{k}", "1"), stored("{k}", "2"), shows("@@{m1}.{k}", "2"),
        setup=CACHING,
    ),
    case(
        "caching-other-table", "KV-POLICY-033", stored("{k}", "1"), by_sql("2", "t2"),
        say("bind {m2}\r\n", "SUCCEED\r\n"), shows("{k}", "2"),
        setup=CACHING,
    ),
    case(
        "caching-hit-switches", "KV-POLICY-034", by_sql("1", key="{k2}"), by_sql("2", "t2", "{k2}"),
        stored("@@{m2}.{k}", "2"), shows("@@{m2}.{k}", "2", on="b"),
        shows("{k2}", "2", on="b"),
        setup=CACHING,
    ),
    case(
        "caching-cas",
        "KV-POLICY-035",
        stored("{k}", "x"),
        say("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"),
        say("cas {k} 0 0 1 {a}\r\ny\r\n", "STORED\r\n"),
        shows("{k}", "y"),
        in_table("y"),
        setup=CACHING,
    ),
    case(
        "caching-multiget", "KV-POLICY-036", stored("{k}", "x"), by_sql("row", key="{k2}"),
        say("get {k} {k2} {k}\r\n", "VALUE {k} 0 1\r\nx\r\nVALUE {k2} 0 3\r\nrow\r\nVALUE {k} 0 1\r\nx\r\nEND\r\n"),
        setup=CACHING,
    ),
    case(
        "reload-empties", "KV-POLICY-044", stored("{k}", "x"), updated("y"), shows("{k}", "x"), Reload(),
        shows("{k}", "y"),
        setup=CACHING,
    ),
    case(
        "caching-time", "KV-POLICY-037", say("set {k} 0 2000000000 1\r\nx\r\n", "STORED\r\n"), shows("{k}", "x"),
        setup=TIMES,
    ),
)  # fmt: skip

NOWHERE = (
    case("disabled-get", "KV-POLICY-038 KV-POLICY-001", by_sql("x"), misses("{k}"), misses("@@{m2}"), setup=OFF),
    *(
        case(f"disabled-{verb}", "KV-POLICY-039", stored("{k}", "x", verb), in_table(None), setup=OFF)
        for verb in ("set", "add", "replace", "append")
    ),
    case("disabled-cas", "KV-POLICY-039", say("cas {k} 0 0 1 7\r\nx\r\n", "STORED\r\n"), in_table(None), setup=OFF),
    case("disabled-incr", "KV-POLICY-040", say("incr {k} 5\r\n", "0\r\n"), say("decr {k} 1\r\n", "0\r\n"), setup=OFF),
    case("disabled-delete", "KV-POLICY-041", deleted(), by_sql("x"), deleted(), in_table("x"), setup=OFF),
    case("disabled-flush", "KV-POLICY-042", by_sql("x"), FLUSHED, in_table("x"), setup=OFF),
    case(
        "disabled-bind", "KV-POLICY-043", say("bind {m2}\r\n", "SUCCEED\r\n"), say("bind kvc-no\r\n", "NOT_FOUND\r\n"),
        setup=OFF,
    ),
)  # fmt: skip

EACH = (
    case(
        "set-apart", "KV-POLICY-008 KV-POLICY-011", by_sql("row"), stored("{k}", "x", "add"), shows("{k}", "row"),
        in_table("row"), deleted(), in_table(None), stored("{k}", "y", "add"), misses("{k}"),
        setup=GET_TABLE,
    ),
    case(
        "delete-apart", "KV-POLICY-008 KV-POLICY-009", stored("{k}", "x"), updated("y"), shows("{k}", "y"), deleted(),
        shows("{k}", "y"), FLUSHED, in_table("y"),
        setup=SET_TABLE,
    ),
    case(
        "get-apart", "KV-POLICY-008 KV-POLICY-010", by_sql("row"), misses("{k}"), stored("{k}", "x"), shows("{k}", "x"),
        deleted(), in_table(None), shows("{k}", "x"), by_sql("row", key="{k2}"), FLUSHED,
        in_table(None, key="{k2}"), shows("{k}", "x"),
        setup=SET_BOTH,
    ),
    case(
        "cached-delete-apart", "KV-POLICY-008 KV-POLICY-014", stored("{k}", "x"), updated("y"), deleted(),
        shows("{k}", "y"), deleted(answer="NOT_FOUND"), in_table("y"),
        setup=DELETE_CACHE,
    ),
    case(
        "all-mappings", "KV-POLICY-007", stored("@@{m2}.{k}", "x"), in_table(None, "t2"), in_table(None),
        setup=TWO,
    ),
    case("first-row", "KV-POLICY-001", stored("{k}", "x"), in_table(None), setup=TWO),
    case(
        "policies-reloaded",
        "KV-POLICY-002",
        sql("UPDATE {policies} SET set_policy = 'caching', get_policy = 'caching' WHERE policy_name = 'cache_policy'"),
        stored("{k}", "x"),
        in_table(None),
        Reload(),
        stored("{k}", "x"),
        in_table("x"),
        updated("y"),
        shows("{k}", "x"),
        setup=TWO,
    ),
)  # fmt: skip

CASES = (*IN_CACHE, *IN_BOTH, *NOWHERE, *EACH)


def test_cache_policies(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
