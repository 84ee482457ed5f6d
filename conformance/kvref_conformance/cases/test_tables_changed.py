"""Tables that are dropped, made again or altered while mapped; {k2} is the mapping of the table that changes."""

from __future__ import annotations

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, mapping, miss, store, unmap
from kvref_conformance.steps import Disconnect, Pause

COLUMNS = f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}"
ONE = Shape(COLUMNS)
# {t}_{k4} is a table that the case drops or alters; connections are closed before, which 8.0 would wait for.
MADE = (sql(f"CREATE TABLE {{t}}_{{k4}} ({COLUMNS})"), mapping("{k2}", "{t}_{k4}"), store("@@{k2}.{k}", "x", flags=3))
GONE = (sql("DROP TABLE {t}_{k4}"), unmap("{k2}"))
TO_OWN = send("bind {k2}\r\n", "SUCCEED\r\n")
DROPPED = (*MADE, Disconnect(), sql("DROP TABLE {t}_{k4}"), TO_OWN)
SET = "set {k} 0 0 1\r\ny\r\n"

CASES = (
    case(
        "rows-deleted-by-sql",
        "KV-LIFE-017",
        store("{k}", "x"),
        hit("{k}", "x"),
        sql("DELETE FROM {t}"),
        miss("{k}"),
        miss("{k}"),
        shape=ONE,
    ),
    case(
        "table-truncated-by-sql",
        "KV-LIFE-017",
        store("{k}", "x"),
        Disconnect(),
        sql("TRUNCATE TABLE {t}"),
        miss("{k}"),
        store("{k}", "y"),
        shape=ONE,
    ),
    case(
        "table-dropped",
        "KV-LIFE-018 KV-LIFE-030",
        *DROPPED,
        miss("{k}"),
        send(SET, "NOT_STORED\r\n"),
        miss("{k}"),
        unmap("{k2}"),
        shape=ONE,
    ),
    case(
        "table-dropped-and-said",
        "KV-LIFE-028",
        *DROPPED,
        *(
            send(line, "SERVER_ERROR <text>\r\n")
            for line in ("get {k}\r\n", SET, "delete {k}\r\n", "incr {k} 1\r\n", "flush_all\r\n")
        ),
        unmap("{k2}"),
        shape=ONE,
    ),
    case(
        "other-tables-than-the-dropped-one",
        "KV-LIFE-029",
        *DROPPED,
        store("@@{m}.{k}", "z"),
        hit("{k}", "z"),
        unmap("{k2}"),
        shape=ONE,
    ),
    case(
        "words-on-a-dropped-table",
        "KV-LIFE-019 KV-LIFE-031 KV-LIFE-032",
        *MADE,
        Disconnect(),
        Pause(0.5),  # the plugin closes the table of a lost connection a moment later
        sql("DROP TABLE {t}_{k4}"),
        TO_OWN,
        send(SET, "NOT_STORED\r\n"),
        send("delete {k}\r\n", "SERVER_ERROR temporary failure\r\n"),
        send("incr {k} 1\r\n", "SERVER_ERROR failed to store item\r\n"),
        unmap("{k2}"),
        shape=ONE,
    ),
    case(
        "dropped-table-in-use",
        "KV-LIFE-020",
        *MADE,
        sql("DROP TABLE {t}_{k4}"),
        hit("{k}", "x", flags=3),
        store("{k}", "y"),
        hit("{k}", "y"),
        unmap("{k2}"),
        shape=ONE,
        engine="mysql",
    ),
    case(
        "table-made-again",
        "KV-LIFE-021",
        *MADE,
        sql("DROP TABLE {t}_{k4}"),
        sql("CREATE TABLE {t}_{k4} (e INT, c BIGINT UNSIGNED, f INT, v VARCHAR(40), k VARCHAR(32) PRIMARY KEY)"),
        sql("INSERT INTO {t}_{k4} VALUES (0, 5, 7, 'new', '{k}')"),
        hit("{k}", "new", flags=7),
        store("{k}", "y"),
        sql("SELECT v, k FROM {t}_{k4}", ("y", "{k}")),
        Disconnect(),
        *GONE,
        shape=ONE,
    ),
    *(
        case(
            f"column-{name}-dropped{suffix}",
            requirement,
            *MADE,
            Disconnect(),
            sql(f"ALTER TABLE {{t}}_{{k4}} DROP COLUMN {name}"),
            TO_OWN,
            send("get {k}\r\n", found),
            send(SET, answered),
            Disconnect(),
            *GONE,
            shape=ONE,
        )
        for name in "vf"
        for requirement, suffix, found, answered in (
            ("KV-LIFE-022 KV-LIFE-033", "", "END\r\n", "NOT_STORED\r\n"),
            ("KV-LIFE-028", "-and-said", "SERVER_ERROR <text>\r\n", "SERVER_ERROR <text>\r\n"),
        )
    ),
    case(
        "columns-moved",
        "KV-LIFE-023",
        *MADE,
        Disconnect(),
        sql("ALTER TABLE {t}_{k4} ADD COLUMN n INT FIRST"),
        sql("ALTER TABLE {t}_{k4} MODIFY v VARCHAR(50) FIRST"),
        TO_OWN,
        hit("{k}", "x", flags=3),
        store("{k}", "y"),
        sql("SELECT v, f FROM {t}_{k4}", ("y", 0)),
        Disconnect(),
        *GONE,
        shape=ONE,
    ),
)
