"""The mapped table: other columns, NOT NULL, triggers, foreign keys, views, two mappings."""

from __future__ import annotations

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, mapping, miss, store, try_store, unmap

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
FULL = insert("{k}", "'7', 3, 5, 0, 'note', 'own'")
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
            send(line, answer),
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
            send(line, answer),
            sql(BESIDE, (None, None)),
            shape=EXTRA,
        )
        for verb, line, answer in WRITES
    ),
    case("defaults-of-other-columns", "KV-TABLE-004", store("{k}", "x"), sql(BESIDE, (None, "usual")), shape=EXTRA),
    case("defaults-not-used", "KV-TABLE-003", store("{k}", "x"), sql(BESIDE, (None, None)), shape=EXTRA),
    case(
        "not-null-with-default",
        "KV-TABLE-006",
        store("{k}", "x"),
        store("{k}", "y"),
        sql("SELECT v, n FROM {t}", ("y", 7)),
        shape=NEEDS_DEFAULTED,
    ),
    *(
        case(
            f"not-null-not-stored-{name}-{verb}",
            "KV-TABLE-005",
            insert("{k}", "'x', 0, 0, 0, 5"),
            try_store(key, "y", "NOT_STORED\r\n", verb),
            sql("SELECT k, v, n FROM {t}", ("{k}", "x", 5)),
            shape=shape,
        )
        for name, shape in (("plain", NEEDS), ("defaulted", NEEDS_DEFAULTED))
        for verb, key in (("set", "{k}"), ("add", "{k2}"), ("append", "{k}"))
    ),
    case(
        "not-null-get-and-delete",
        "KV-TABLE-007 KV-TABLE-022",
        insert("{k}", "'x', 3, 0, 0, 5"),
        hit("{k}", "x", flags=3),
        send("delete {k}\r\n", "DELETED\r\n"),
        miss("{k}"),
        shape=NEEDS,
    ),
    case("refused-by-the-table", "KV-TABLE-010", try_store("{k}", "x", REFUSED), miss("{k}"), shape=NEEDS),
    case("refused-without-a-cause", "KV-TABLE-009", try_store("{k}", "x", "NOT_STORED\r\n"), miss("{k}"), shape=NEEDS),
    case(
        "row-after-a-refusal",
        "KV-TABLE-008",
        store("{k}", "x"),
        store("{k2}", "y", flags=4),
        try_store("{k2}", "x", ("NOT_STORED\r\n", REFUSED)),
        hit("{k2}", "y", flags=4),
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
        store("{k}", "x"),
        sql("SELECT c2 FROM {t3} WHERE c1 = '{k}'", ("there",)),
        shape=FIRED,
    ),
    case("checks-do-not-hold", "KV-TABLE-012", store("{k}", "bad"), hit("{k}", "bad"), shape=CHECKED),
    case(
        "flush-of-a-parent",
        "KV-FLUSH-018",
        *REFERRED_TO,
        send("flush_all\r\n", REFUSED, patience=15.0),
        sql("SELECT k FROM {t} ORDER BY k", ("a",), ("b",)),
        sql("DELETE FROM {t}_child"),
        send("flush_all\r\n", "OK\r\n", patience=15.0),
        shape=FLUSHED,
    ),
    case(
        "flush-of-a-parent-keeps-its-rows",
        "KV-FLUSH-015",
        *REFERRED_TO,
        send("flush_all\r\n", "OK\r\n", patience=15.0),
        sql("SELECT k FROM {t}", ("a",)),
        sql("DELETE FROM {t}_child"),
        shape=FLUSHED,
    ),
    case(
        "flush-of-a-parent-refused",
        "KV-FLUSH-016",
        *REFERRED_TO,
        sql("DELETE FROM {t}_child"),
        send("flush_all\r\n", "SERVER_ERROR failed to flush cache\r\n", patience=15.0),
        shape=FLUSHED,
    ),
    case(
        "delete-of-a-parent",
        "KV-TABLE-014",
        store("{k}", "x"),
        sql("CREATE TABLE {t}_child (id INT PRIMARY KEY, k VARCHAR(32), FOREIGN KEY (k) REFERENCES {t} (k))"),
        sql("INSERT INTO {t}_child VALUES (1, '{k}')"),
        send("delete {k}\r\n", "NOT_FOUND\r\n"),
        hit("{k}", "x"),
        sql("DELETE FROM {t}_child"),
        send("delete {k}\r\n", "DELETED\r\n"),
        shape=PARENT,
    ),
    case(
        "orphan",
        "KV-TABLE-017",
        sql("INSERT INTO {t3} VALUES ('{k2}', 'parent', 0, 0, 0)"),
        send("set {k} 0 0 {#k2}\r\n{k2}\r\n", "STORED\r\n"),
        try_store("{k3}", "nobody", ("NOT_STORED\r\n", REFUSED)),
        miss("{k3}"),
        try_store("{k}", "nobody", ("NOT_STORED\r\n", REFUSED)),
        send("get {k}\r\n", "VALUE {k} 0 {#k2}\r\n{k2}\r\nEND\r\n"),
        shape=CHILD,
    ),
    case(
        "view",
        "KV-TABLE-018",
        sql("CREATE VIEW {t}_view AS SELECT k, v FROM {t}"),
        store("{k}", "x"),
        sql("SELECT v FROM {t}_view WHERE k = '{k}'", ("x",)),
        sql("UPDATE {t}_view SET v = 'y' WHERE k = '{k}'"),
        hit("{k}", "y"),
        sql("DROP VIEW {t}_view"),
        shape=VIEWED,
    ),
    case(
        "two-mappings-by-other-keys",
        "KV-KEY-054 KV-KEY-063",
        mapping("{k2}", key="u", index="uu"),
        insert("k1", "'u1', '1', 0, 0, 0"),
        hit("k1", "1"),
        hit("@@{k2}.u1", "1"),
        try_store("u1", "x", "NOT_STORED\r\n"),
        send("bind {m}\r\n", "SUCCEED\r\n"),
        store("k1", "y"),
        sql("SELECT k, u, v FROM {t}", ("k1", None, "y")),
        unmap("{k2}"),
        shape=KEYS,
    ),
    case(
        "two-mappings-with-other-columns",
        "KV-TABLE-021",
        mapping("{k2}", values="w"),
        insert("{k}", "'a', 'b', 0, 0, 0"),
        hit("{k}", "a|b"),
        hit("@@{k2}.{k}", "b"),
        sql("UPDATE {t} SET w = 'c'"),
        hit("{k}", "c"),
        hit("@@{m}.{k}", "a|c"),
        unmap("{k2}"),
        shape=TWO,
    ),
)

CASES = (*OTHER_COLUMNS, *RULES)
