"""The mapped table: other columns, NOT NULL, triggers, foreign keys, views, two mappings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, say, sql
from kvref_conformance.cases.phrases import OPTIONS, answered, inserted, misses, row, row_removed, shows, stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case

REFUSED = "SERVER_ERROR <text>\r\n"
COLUMNS = f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}"
EXTRA = Shape(f"{COLUMNS}, n VARCHAR(10), d VARCHAR(10) DEFAULT 'usual'")
# A column that memcached does not know and that takes no NULL, with and without a DEFAULT.
NEEDS = Shape(f"{COLUMNS}, n INT NOT NULL")
NEEDS_DEFAULTED = Shape(f"{COLUMNS}, n INT NOT NULL DEFAULT 7")
CHECKED = Shape(f"{COLUMNS}, CHECK (v <> 'bad')")
FIRED = Shape(f"{COLUMNS}, n INT DEFAULT 0, w INT")
PARENT = Shape(f"{COLUMNS}, p INT")
CHILD = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(32), {OPTIONS}, FOREIGN KEY (v) REFERENCES {{t3}} (c1)")
FLUSHED = Shape(f"{COLUMNS}, q INT, r INT")
# Another table refers to the row a and to no other.
REFERRED_TO = (
    sql("INSERT INTO {t} (k, v) VALUES ('a', 'x'), ('b', 'y')"),
    sql("CREATE TABLE IF NOT EXISTS {t}_child (id INT PRIMARY KEY, k VARCHAR(32), FOREIGN KEY (k) REFERENCES {t} (k))"),
    sql("INSERT INTO {t}_child VALUES (1, 'a')"),
)
VIEWED = Shape(f"{COLUMNS}, q INT")
KEYS = Shape(f"k VARCHAR(10) PRIMARY KEY, u VARCHAR(10), v VARCHAR(10), {OPTIONS}, UNIQUE INDEX uu (u)")
TWO = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), w VARCHAR(40), {OPTIONS}", values="v,w")
FULL = inserted("{k}", "'7', 3, 5, 0, 'note', 'own'")
BESIDE = "SELECT n, d FROM {t} WHERE k = '{k}'"
WRITES = (
    ("set", "set {k} 0 0 1\r\n8\r\n", "STORED\r\n"),
    ("replace", "replace {k} 0 0 1\r\n8\r\n", "STORED\r\n"),
    ("append", "append {k} 0 0 1\r\n8\r\n", "STORED\r\n"),
    ("cas", "cas {k} 0 0 1 5\r\n8\r\n", "STORED\r\n"),
    ("incr", "incr {k} 1\r\n", "8\r\n"),
)

OTHER_COLUMNS = (
    *(
        case(
            f"other-columns-after-{verb}",
            "KV-TABLE-002",
            FULL,
            say(line, answer),
            sql(BESIDE, ("note", "own")),
            shape=EXTRA,
        )
        for verb, line, answer in WRITES
    ),
    *(
        case(
            f"other-columns-null-after-{verb}",
            "KV-TABLE-001",
            FULL,
            say(line, answer),
            sql(BESIDE, (None, None)),
            shape=EXTRA,
        )
        for verb, line, answer in WRITES
    ),
    case("defaults-of-other-columns", "KV-TABLE-004", stored("{k}", "x"), sql(BESIDE, (None, "usual")), shape=EXTRA),
    case("defaults-not-used", "KV-TABLE-003", stored("{k}", "x"), sql(BESIDE, (None, None)), shape=EXTRA),
    case(
        "not-null-with-default",
        "KV-TABLE-006",
        stored("{k}", "x"),
        stored("{k}", "y"),
        sql("SELECT v, n FROM {t}", ("y", 7)),
        shape=NEEDS_DEFAULTED,
    ),
    *(
        case(
            f"not-null-not-stored-{name}-{verb}",
            "KV-TABLE-005",
            inserted("{k}", "'x', 0, 0, 0, 5"),
            answered(key, "y", "NOT_STORED\r\n", verb),
            sql("SELECT k, v, n FROM {t}", ("{k}", "x", 5)),
            shape=shape,
        )
        for name, shape in (("plain", NEEDS), ("defaulted", NEEDS_DEFAULTED))
        for verb, key in (("set", "{k}"), ("add", "{k2}"), ("append", "{k}"))
    ),
    case(
        "not-null-get-and-delete",
        "KV-TABLE-007 KV-TABLE-022",
        inserted("{k}", "'x', 3, 0, 0, 5"),
        shows("{k}", "x", flags=3),
        say("delete {k}\r\n", "DELETED\r\n"),
        misses("{k}"),
        shape=NEEDS,
    ),
    case("refused-by-the-table", "KV-TABLE-010", answered("{k}", "x", REFUSED), misses("{k}"), shape=NEEDS),
    case("refused-without-a-cause", "KV-TABLE-009", answered("{k}", "x", "NOT_STORED\r\n"), misses("{k}"), shape=NEEDS),
    case(
        "row-after-a-refusal",
        "KV-TABLE-008",
        stored("{k}", "x"),
        stored("{k2}", "y", flags=4),
        answered("{k2}", "x", ("NOT_STORED\r\n", REFUSED)),
        shows("{k2}", "y", flags=4),
        sql("SELECT COUNT(*) FROM {t} WHERE v = 'x'", (1,)),
        shape=Shape(f"{COLUMNS}, UNIQUE INDEX uv (v)"),
    ),
)

RULES = (
    case(
        "triggers-do-not-fire",
        "KV-TABLE-011",
        sql("CREATE TRIGGER {t}_fires BEFORE INSERT ON {t} FOR EACH ROW DELETE FROM {t3} WHERE c1 = '{k}'"),
        sql("INSERT INTO {t3} VALUES ('{k}', 'there', 0, 0, 0)"),
        stored("{k}", "x"),
        sql("SELECT c2 FROM {t3} WHERE c1 = '{k}'", ("there",)),
        shape=FIRED,
    ),
    case("checks-do-not-hold", "KV-TABLE-012", stored("{k}", "bad"), shows("{k}", "bad"), shape=CHECKED),
    case(
        "flush-of-a-parent",
        "KV-FLUSH-018",
        *REFERRED_TO,
        say("flush_all\r\n", REFUSED, patience=15.0),
        sql("SELECT k FROM {t} ORDER BY k", ("a",), ("b",)),
        sql("DELETE FROM {t}_child"),
        say("flush_all\r\n", "OK\r\n", patience=15.0),
        shape=FLUSHED,
    ),
    case(
        "flush-of-a-parent-keeps-its-rows",
        "KV-FLUSH-015",
        *REFERRED_TO,
        say("flush_all\r\n", "OK\r\n", patience=15.0),
        sql("SELECT k FROM {t}", ("a",)),
        sql("DELETE FROM {t}_child"),
        shape=FLUSHED,
    ),
    case(
        "flush-of-a-parent-refused",
        "KV-FLUSH-016",
        *REFERRED_TO,
        sql("DELETE FROM {t}_child"),
        say("flush_all\r\n", "SERVER_ERROR failed to flush cache\r\n", patience=15.0),
        shape=FLUSHED,
    ),
    case(
        "delete-of-a-parent",
        "KV-TABLE-014",
        stored("{k}", "x"),
        sql("CREATE TABLE {t}_child (id INT PRIMARY KEY, k VARCHAR(32), FOREIGN KEY (k) REFERENCES {t} (k))"),
        sql("INSERT INTO {t}_child VALUES (1, '{k}')"),
        say("delete {k}\r\n", "NOT_FOUND\r\n"),
        shows("{k}", "x"),
        sql("DELETE FROM {t}_child"),
        say("delete {k}\r\n", "DELETED\r\n"),
        shape=PARENT,
    ),
    case(
        "orphan",
        "KV-TABLE-017",
        sql("INSERT INTO {t3} VALUES ('{k2}', 'parent', 0, 0, 0)"),
        say("set {k} 0 0 {#k2}\r\n{k2}\r\n", "STORED\r\n"),
        answered("{k3}", "nobody", ("NOT_STORED\r\n", REFUSED)),
        misses("{k3}"),
        answered("{k}", "nobody", ("NOT_STORED\r\n", REFUSED)),
        say("get {k}\r\n", "VALUE {k} 0 {#k2}\r\n{k2}\r\nEND\r\n"),
        shape=CHILD,
    ),
    case(
        "view",
        "KV-TABLE-018",
        sql("CREATE VIEW {t}_view AS SELECT k, v FROM {t}"),
        stored("{k}", "x"),
        sql("SELECT v FROM {t}_view WHERE k = '{k}'", ("x",)),
        sql("UPDATE {t}_view SET v = 'y' WHERE k = '{k}'"),
        shows("{k}", "y"),
        sql("DROP VIEW {t}_view"),
        shape=VIEWED,
    ),
    case(
        "two-mappings-by-other-keys",
        "KV-KEY-054 KV-KEY-063",
        row("{k2}", key="u", index="uu"),
        inserted("k1", "'u1', '1', 0, 0, 0"),
        shows("k1", "1"),
        shows("@@{k2}.u1", "1"),
        answered("u1", "x", "NOT_STORED\r\n"),
        say("bind {m}\r\n", "SUCCEED\r\n"),
        stored("k1", "y"),
        sql("SELECT k, u, v FROM {t}", ("k1", None, "y")),
        row_removed("{k2}"),
        shape=KEYS,
    ),
    case(
        "two-mappings-with-other-columns",
        "KV-TABLE-021",
        row("{k2}", values="w"),
        inserted("{k}", "'a', 'b', 0, 0, 0"),
        shows("{k}", "a|b"),
        shows("@@{k2}.{k}", "b"),
        sql("UPDATE {t} SET w = 'c'"),
        shows("{k}", "c"),
        shows("@@{m}.{k}", "a|c"),
        row_removed("{k2}"),
        shape=TWO,
    ),
)

CASES = (*OTHER_COLUMNS, *RULES)


def test_table(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
