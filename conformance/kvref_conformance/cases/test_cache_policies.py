"""Cache policies: the effect of get, set, delete and flush on the table and on the memory cache.

{k} is an unused key; a row is always one of {t1} or {t2}. Numbers are followed by a blank if the plugin would read on
in its memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.case import Setup, Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, miss, store, try_store
from kvref_conformance.steps import Pause, Reload

if TYPE_CHECKING:
    from kvref_conformance.steps import Send, Sql


def policy_setup(get: str, set_: str = "", delete: str = "", flush: str = "", name: str = "cache_policy") -> Setup:
    """Return the setup of one row; what is not named is as the one before it."""
    set_ = set_ or get
    delete = delete or set_
    return Setup(policies=((name, get, set_, delete, flush or delete),))


CACHING, CACHE = policy_setup("caching"), policy_setup("cache_only", name="other")
GET_TABLE: Final = policy_setup("innodb_only", "cache_only", "caching", "cache_only")
SET_TABLE: Final = policy_setup("caching", "innodb_only", "disabled")
SET_BOTH: Final = policy_setup("cache_only", "caching", "innodb_only")
DELETE_CACHE: Final = policy_setup("caching", "caching", "cache_only")
TIMES: Final = policy_setup("innodb_only", "caching", "innodb_only")
USUAL_ROW: Final = ("cache_policy", *["innodb_only"] * 4)
OFF: Final = Setup(policies=(("a_first", *["disabled"] * 4), USUAL_ROW))
TWO: Final = Setup(
    policies=(("cache_policy", "innodb_only", "disabled", *["innodb_only"] * 2), ("z_last", *["disabled"] * 4))
)


def table_value(value: str | None, table: str = "t1", key: str = "{k}") -> Sql:
    """Want that value in the row of a table, or no row."""
    rows = () if value is None else ((value,),)
    return sql(f"SELECT c2 FROM {{{table}}} WHERE c1 = '{key}'", *rows)  # noqa: S608 - a template


def insert(value: str, table: str = "t1", key: str = "{k}") -> Sql:
    """Insert a row."""
    return sql(f"INSERT INTO {{{table}}} VALUES ('{key}', '{value}', 0, 0, 0)")  # noqa: S608 - a template


def update(value: str) -> Sql:
    """Change the row of {t1}."""
    return sql(f"UPDATE {{t1}} SET c2 = '{value}' WHERE c1 = '{{k}}'")  # noqa: S608 - a template


def delete(word: str = "{k}", answer: str = "DELETED") -> Send:
    """Delete a word and want that answer."""
    return send(f"delete {word}\r\n", f"{answer}\r\n")


ROW_GONE: Final = sql("DELETE FROM {t1} WHERE c1 = '{k}'")
FLUSHED: Final = send("flush_all\r\n", "OK\r\n", patience=12)

IN_CACHE = (
    case("cache-only-get", "KV-POLICY-010", insert("x"), miss("{k}"), setup=CACHE),
    case("cache-only-set", "KV-POLICY-011", store("{k}", "x"), hit("{k}", "x"), table_value(None), setup=CACHE),
    case("cache-only-shared", "KV-POLICY-012", store("{k}", "x"), hit("{k}", "x", on="b"), setup=CACHE),
    case(
        "cache-only-conditions",
        "KV-POLICY-013",
        insert("row"),
        *(try_store("{k}", "x", "NOT_STORED\r\n", verb) for verb in ("replace", "append", "prepend")),
        send("cas {k} 0 0 1 1\r\nx\r\n", "NOT_FOUND\r\n"),
        send("incr {k} 1\r\n", "NOT_FOUND\r\n"),
        store("{k}", "x", "add"), try_store("{k}", "y", "NOT_STORED\r\n", "add"), store("{k}", "y", "replace"),
        hit("{k}", "y"), table_value("row"),
        setup=CACHE,
    ),
    case(
        "cache-only-delete",
        "KV-POLICY-014",
        insert("row"),
        delete(answer="NOT_FOUND"), store("{k}", "x"), delete(), miss("{k}"), table_value("row"),
        setup=CACHE,
    ),
    case(
        "cache-only-flush", "KV-POLICY-015", insert("r"), store("{k}", "x"), FLUSHED, miss("{k}"), table_value("r"),
        setup=CACHE,
    ),
    case(
        "cache-only-cas",
        "KV-POLICY-016",
        store("{k}", "x"),
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"),
        *(send(f"cas {{k}} 0 0 1 {{a}}\r\n{v}\r\n", f"{said}\r\n") for v, said in (("y", "STORED"), ("z", "EXISTS"))),
        hit("{k}", "y"),
        setup=CACHE,
    ),
    case(
        "cache-only-time",
        "KV-POLICY-017",
        send("set {k} 0 1000000000 1\r\nx\r\n", "STORED\r\n"),
        miss("{k}"),
        send("set {k} 0 2592000 1\r\nx\r\n", "STORED\r\n"),
        hit("{k}", "x"),
        send("set {k} 0 1 1\r\nx\r\n", "STORED\r\n"),
        Pause(1.3),
        miss("{k}"),
        store("{k}", "y", "add"),
        setup=CACHE,
    ),
    case(
        "cache-only-time-from-start",
        "KV-POLICY-018",
        send("set {k} 0 1 1\r\nx\r\n", "STORED\r\n"),
        miss("{k}"),
        send("set {k} 0 1000000000 1\r\nx\r\n", "STORED\r\n"),
        hit("{k}", "x"),
        setup=CACHE,
    ),
    case(
        "cache-only-flags",
        "KV-POLICY-019",
        store("{k}", "12 ", flags=4294967295),
        hit("{k}", "12 ", flags=4294967295),
        setup=CACHE,
    ),
    case(
        "cache-only-flags-of-append",
        "KV-POLICY-050",
        store("{k}", "12 ", flags=4294967295),
        try_store("{k}", "x", "STORED\r\n", "append", flags=7),
        send("get {k}\r\n", tuple(f"VALUE {{k}} 4294967295 {len(v)}\r\n{v}\r\nEND\r\n" for v in ("12 x", "1x"))),
        setup=CACHE,
    ),
    case(
        "cache-only-flags-of-incr",
        "KV-POLICY-050",
        store("{k}", "10 ", flags=4294967295),
        send("incr {k} 5\r\n", "15\r\n"),
        send(
            "get {k}\r\n",
            tuple(f"VALUE {{k}} 4294967295 {len(v)}\r\n{v}\r\nEND\r\n" for v in ("15", "15 ", "15\r\n")),
        ),
        setup=CACHE,
    ),
    *(
        case(
            f"cache-only-sum-{name}", "KV-POLICY-020", store("{k}", value), send(f"{verb}\r\n", f"{answer}\r\n"),
            setup=CACHE,
        )
        for name, value, verb, answer in (
            ("incr", "10 ", "incr {k} 5", "15"),
            ("decr", "10 ", "decr {k} 11", "0"),
            ("top", "10 ", "incr {k} 18446744073709551615", "9"),
        )
    ),
    case(
        "cache-only-text", "KV-POLICY-051", store("{k}", "abc "),
        send("incr {k} 1\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
        hit("{k}", "abc "),
        setup=CACHE,
    ),
    case(
        "cache-only-sum-left", "KV-POLICY-021", store("{k}", "10 "), send("incr {k} 5\r\n", "15\r\n"),
        hit("{k}", "15"),
        setup=CACHE,
    ),
    case(
        "cache-only-append", "KV-POLICY-022", store("{k}", "abcd"), store("{k}", "ef", "append"),
        hit("{k}", "abcdef"),
        setup=CACHE,
    ),
    case(
        "cache-only-prepend", "KV-POLICY-022", store("{k}", "abcd"), store("{k}", "efgh", "prepend"),
        hit("{k}", "efghabcd"),
        setup=CACHE,
    ),
    case(
        "cache-only-any-word",
        "KV-POLICY-023",
        miss("@@{m2}"), store("@@{m2}.{k}", "x"), miss("{k}"), hit("@@{m2}.{k}", "x"), miss("{k}"),
        setup=CACHE,
    ),
    case(
        "cache-only-switch",
        "KV-POLICY-024 KV-POLICY-053",
        store("@@{m2}.{k}", "2"), hit("{k}", "2"), store("@@{m1}.{k}", "1"), hit("{k}", "1"),
        hit("@@{m2}.{k}", "2"), table_value(None, "t2"),
        setup=CACHE,
    ),
)  # fmt: skip

IN_BOTH = (
    case("caching-set", "KV-POLICY-025", store("{k}", "x"), table_value("x"), hit("{k}", "x"), setup=CACHING),
    case(
        "caching-hit", "KV-POLICY-026 KV-POLICY-012", store("{k}", "x"), update("sql"), hit("{k}", "x"), ROW_GONE,
        hit("{k}", "x", on="b"), store("{k}", "y"), hit("{k}", "y"),
        setup=CACHING,
    ),
    case(
        "caching-miss", "KV-POLICY-027", insert("x"), hit("{k}", "x"), update("y"), hit("{k}", "y"),
        setup=CACHING,
    ),
    case(
        "caching-delete", "KV-POLICY-028", store("{k}", "x"), delete(), miss("{k}"), table_value(None), insert("row"),
        delete(), table_value(None), delete(answer="NOT_FOUND"),
        setup=CACHING,
    ),
    case(
        "caching-delete-row-gone", "KV-POLICY-028", store("{k}", "x"), ROW_GONE, delete(), miss("{k}"),
        setup=CACHING,
    ),
    case(
        "caching-flush", "KV-POLICY-029", store("{k}", "x"), FLUSHED, miss("{k}"), table_value(None),
        setup=CACHING,
    ),
    case(
        "caching-refused-add", "KV-POLICY-030", insert("row"), try_store("{k}", "new", "NOT_STORED\r\n", "add"),
        hit("{k}", "row"),
        setup=CACHING,
    ),
    case(
        "caching-refused-replace", "KV-POLICY-030", store("{k}", "old"), ROW_GONE,
        try_store("{k}", "new", "NOT_STORED\r\n", "replace"), hit("{k}", "old"),
        setup=CACHING,
    ),
    case(
        "caching-cut", "KV-POLICY-031", store("{k}", "vwxyzvwxyz"), hit("{k}", "vwxyzvwxyz"),
        sql("SELECT v FROM {t}", ("vwxyz",)),
        setup=CACHING, shape=Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(5), {OPTIONS}"),
    ),
    case(
        "caching-one-row", "KV-POLICY-032", store("@@{m1}.{k}", "1"), store("{k}", "2"), hit("@@{m1}.{k}", "2"),
        setup=CACHING,
    ),
    case(
        "caching-other-table", "KV-POLICY-033", store("{k}", "1"), insert("2", "t2"),
        send("bind {m2}\r\n", "SUCCEED\r\n"), hit("{k}", "2"),
        setup=CACHING,
    ),
    case(
        "caching-hit-switches", "KV-POLICY-034", insert("1", key="{k2}"), insert("2", "t2", "{k2}"),
        store("@@{m2}.{k}", "2"), hit("@@{m2}.{k}", "2", on="b"),
        hit("{k2}", "2", on="b"),
        setup=CACHING,
    ),
    case(
        "caching-cas",
        "KV-POLICY-035",
        store("{k}", "x"),
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"),
        send("cas {k} 0 0 1 {a}\r\ny\r\n", "STORED\r\n"),
        hit("{k}", "y"),
        table_value("y"),
        setup=CACHING,
    ),
    case(
        "caching-multiget", "KV-POLICY-036", store("{k}", "x"), insert("row", key="{k2}"),
        send("get {k} {k2} {k}\r\n", "VALUE {k} 0 1\r\nx\r\nVALUE {k2} 0 3\r\nrow\r\nVALUE {k} 0 1\r\nx\r\nEND\r\n"),
        setup=CACHING,
    ),
    case(
        "reload-empties", "KV-POLICY-044", store("{k}", "x"), update("y"), hit("{k}", "x"), Reload(),
        hit("{k}", "y"),
        setup=CACHING,
    ),
    case(
        "caching-time", "KV-POLICY-037", send("set {k} 0 2000000000 1\r\nx\r\n", "STORED\r\n"), hit("{k}", "x"),
        setup=TIMES,
    ),
)  # fmt: skip

NOWHERE = (
    case("disabled-get", "KV-POLICY-038 KV-POLICY-001", insert("x"), miss("{k}"), miss("@@{m2}"), setup=OFF),
    *(
        case(f"disabled-{verb}", "KV-POLICY-039", store("{k}", "x", verb), table_value(None), setup=OFF)
        for verb in ("set", "add", "replace", "append")
    ),
    case("disabled-cas", "KV-POLICY-039", send("cas {k} 0 0 1 7\r\nx\r\n", "STORED\r\n"), table_value(None), setup=OFF),
    case("disabled-incr", "KV-POLICY-040", send("incr {k} 5\r\n", "0\r\n"), send("decr {k} 1\r\n", "0\r\n"), setup=OFF),
    case("disabled-delete", "KV-POLICY-041", delete(), insert("x"), delete(), table_value("x"), setup=OFF),
    case("disabled-flush", "KV-POLICY-042", insert("x"), FLUSHED, table_value("x"), setup=OFF),
    case(
        "disabled-bind", "KV-POLICY-043",
        send("bind {m2}\r\n", "SUCCEED\r\n"), send("bind kvc-no\r\n", "NOT_FOUND\r\n"),
        setup=OFF,
    ),
)  # fmt: skip

EACH = (
    case(
        "set-apart", "KV-POLICY-008 KV-POLICY-011", insert("row"), store("{k}", "x", "add"), hit("{k}", "row"),
        table_value("row"), delete(), table_value(None), store("{k}", "y", "add"), miss("{k}"),
        setup=GET_TABLE,
    ),
    case(
        "delete-apart", "KV-POLICY-008 KV-POLICY-009", store("{k}", "x"), hit("{k}", "x"), update("y"),
        hit("{k}", "y"), delete(), hit("{k}", "y"), FLUSHED, table_value("y"),
        setup=SET_TABLE,
    ),
    case(
        "get-apart", "KV-POLICY-008 KV-POLICY-010", insert("row"), miss("{k}"), store("{k}", "x"), hit("{k}", "x"),
        delete(), table_value(None), hit("{k}", "x"), insert("row", key="{k2}"), FLUSHED,
        table_value(None, key="{k2}"), hit("{k}", "x"),
        setup=SET_BOTH,
    ),
    case(
        "cached-delete-apart", "KV-POLICY-008 KV-POLICY-014", store("{k}", "x"), update("y"), delete(),
        hit("{k}", "y"), delete(answer="NOT_FOUND"), table_value("y"),
        setup=DELETE_CACHE,
    ),
    case(
        "all-mappings", "KV-POLICY-007", store("@@{m2}.{k}", "x"), table_value(None, "t2"), table_value(None),
        setup=TWO,
    ),
    case("first-row", "KV-POLICY-001", store("{k}", "x"), table_value(None), setup=TWO),
    case(
        "policies-reloaded",
        "KV-POLICY-002",
        sql("UPDATE {policies} SET set_policy = 'caching', get_policy = 'caching' WHERE policy_name = 'cache_policy'"),
        store("{k}", "x"),
        table_value(None),
        Reload(),
        store("{k}", "x"),
        table_value("x"),
        update("y"),
        hit("{k}", "x"),
        setup=TWO,
    ),
)  # fmt: skip

NEWER = (
    case(
        "cache-only-touch",
        "KV-POLICY-055",
        insert("row"),
        send("touch {k} 100\r\n", "NOT_FOUND\r\n"),
        store("{k}", "x"),
        send("touch {k} 100\r\n", "TOUCHED\r\n"),
        sql("SELECT c2, c5 FROM {t1} WHERE c1 = '{k}'", ("row", 0)),
        send("mg {k} t\r\n", ("HD t100\r\n", "HD t99\r\n")),
        setup=CACHE,
    ),
    case(
        "meta-by-set",
        "KV-POLICY-054",
        insert("5"),
        send("ma {k}\r\n", "NF\r\n"),
        send("mg {k} T100\r\n", "EN\r\n"),
        send("md {k} I\r\n", "NF\r\n"),
        send("gat 100 {k}\r\n", "END\r\n"),
        send("mg {k} v\r\n", "VA 1\r\n5\r\n"),
        send("ms {k} 1\r\n7\r\n", "HD\r\n"),
        send("ma {k} v\r\n", "VA 1\r\n8\r\n"),
        send("mg {k} v\r\n", "VA 1\r\n5\r\n"),
        send("md {k}\r\n", "HD\r\n"),
        table_value(None),
        setup=GET_TABLE,
    ),
)
CASES = (*IN_CACHE, *IN_BOTH, *NOWHERE, *EACH, *NEWER)
