"""The index on the key column: primary or unique, of one column, named as the row of `containers` says."""

from __future__ import annotations

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, miss, store, try_store, unmapped

COLUMNS = f"v VARCHAR(40), {OPTIONS}"
SECONDARY = Shape(f"k VARCHAR(32) NOT NULL, {COLUMNS}, UNIQUE INDEX u (k)", index="u")
BESIDE = Shape(
    f"id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k VARCHAR(32) NOT NULL, {COLUMNS}, UNIQUE INDEX u (k)", index="u"
)
DEFAULTED = Shape(f"id INT PRIMARY KEY DEFAULT 7, k VARCHAR(32) NOT NULL, {COLUMNS}, UNIQUE INDEX u (k)", index="u")
BOTH = Shape(f"k VARCHAR(32) NOT NULL PRIMARY KEY, {COLUMNS}, UNIQUE INDEX u (k)", index="u")
ROW = sql("INSERT INTO {t} (k, v, f, c, e) VALUES ('{k}', '7', 3, 5, 0)")
WRONG = {
    "KV-KEY-044": {
        "not-unique": (f"k VARCHAR(32) NOT NULL, {COLUMNS}, INDEX u (k)", "u"),
        "unknown": (f"k VARCHAR(32) NOT NULL PRIMARY KEY, {COLUMNS}", "u"),
        "empty": (f"k VARCHAR(32) NOT NULL PRIMARY KEY, {COLUMNS}", ""),
    },
    "KV-KEY-045": {
        "of-another-column": (f"k VARCHAR(32) NOT NULL, {COLUMNS}, PRIMARY KEY (v)", "PRIMARY"),
        "unique-of-another-column": (f"k VARCHAR(32) NOT NULL PRIMARY KEY, {COLUMNS}, UNIQUE INDEX u (f)", "u"),
    },
    "KV-KEY-046": {
        "composite-primary": (f"k VARCHAR(32) NOT NULL, {COLUMNS}, PRIMARY KEY (k, f)", "PRIMARY"),
        "composite-primary-behind": (f"k VARCHAR(32) NOT NULL, {COLUMNS}, PRIMARY KEY (f, k)", "PRIMARY"),
    },
    "KV-KEY-048": {"composite-unique": (f"k VARCHAR(32) NOT NULL, {COLUMNS}, UNIQUE INDEX u (k, f)", "u")},
}

CASES = (
    case(
        "index-in-another-letter-case",
        "KV-KEY-037",
        store("{k}", "x"),
        hit("{k}", "x"),
        shape=Shape(f"k VARCHAR(32) PRIMARY KEY, {COLUMNS}", index="primary"),
    ),
    case(
        "secondary-index-in-another-letter-case",
        "KV-KEY-037",
        store("{k}", "x"),
        hit("{k}", "x"),
        shape=Shape(f"k VARCHAR(32) NOT NULL, {COLUMNS}, UNIQUE INDEX Uniq (k)", index="uNIQ"),
    ),
    case(
        "secondary-index",
        "KV-KEY-038",
        store("{k}", "1", "add"),
        store("{k}", "2"),
        store("{k}", "0", "append"),
        send("incr {k} 5\r\n", "25\r\n"),
        hit("{k}", "25"),
        sql("SELECT k, v FROM {t}", ("{k}", "25")),
        send("delete {k}\r\n", "DELETED\r\n"),
        miss("{k}"),
        shape=SECONDARY,
    ),
    case(
        "primary-key-and-unique-index",
        "KV-KEY-049",
        store("{k}", "x"),
        store("{k}", "y"),
        hit("{k}", "y"),
        send("delete {k}\r\n", "DELETED\r\n"),
        shape=BOTH,
    ),
    case(
        "beside-a-primary-key-get",
        "KV-KEY-042 KV-KEY-061",
        ROW,
        hit("{k}", "7", flags=3),
        send("delete {k}\r\n", "DELETED\r\n"),
        miss("{k}"),
        shape=BESIDE,
    ),
    case(
        "beside-a-primary-key-every-verb",
        "KV-KEY-043",
        ROW,
        store("{k}", "2"),
        store("{k}", "0", "append"),
        send("incr {k} 5\r\n", "25\r\n"),
        try_store("{k}", "x", "NOT_STORED\r\n", "add"),
        sql("SELECT k, v FROM {t}", ("{k}", "25")),
        send("delete {k}\r\n", "DELETED\r\n"),
        miss("{k}"),
        shape=BESIDE,
    ),
    case(
        "beside-a-primary-key-with-a-default",
        "KV-KEY-043",
        store("{k}", "x", "add"),
        store("{k}", "y"),
        sql("SELECT id, k, v FROM {t}", (7, "{k}", "y")),
        shape=DEFAULTED,
    ),
    case(
        "beside-a-primary-key-number",
        "KV-KEY-043",
        ROW,
        sql("UPDATE {t} SET id = 77"),
        store("{k}", "8"),
        sql("SELECT id, v FROM {t}", (77, "8")),
        shape=BESIDE,
    ),
    *(
        case(
            f"beside-a-primary-key-{verb}",
            "KV-KEY-039",
            ROW,
            try_store(key, "x", "NOT_STORED\r\n", verb),
            hit("{k}", "7", flags=3),
            shape=BESIDE,
        )
        for verb, key in (("set", "{k}"), ("add", "{k2}"), ("append", "{k}"), ("replace", "{k}"))
    ),
    case(
        "beside-a-primary-key-cas",
        "KV-KEY-039",
        ROW,
        send("cas {k} 0 0 1 5\r\nx\r\n", "NOT_STORED\r\n"),
        hit("{k}", "7", flags=3),
        shape=BESIDE,
    ),
    case(
        "beside-a-primary-key-incr",
        "KV-KEY-040",
        ROW,
        send("incr {k} 1\r\n", "SERVER_ERROR failed to store item\r\n"),
        hit("{k}", "7", flags=3),
        shape=BESIDE,
    ),
    case(
        "beside-a-primary-key-incr-lost",
        "KV-KEY-041",
        ROW,
        send("incr {k} 1\r\n", "8\r\n"),
        hit("{k}", "7", flags=3),
        shape=BESIDE,
    ),
    *(
        case(
            f"index-{name}",
            requirement,
            unmapped("{m}"),
            store("{k}", "x"),
            shape=Shape(columns, index=index),
            bind="m1",
        )
        for requirement, rows in WRONG.items()
        for name, (columns, index) in rows.items()
    ),
    case(
        "composite-primary-accepted",
        "KV-KEY-047 KV-KEY-062",
        insert("{k}", "1, 'x', 0, 0, 0"),
        miss("{k}"),
        try_store("{k2}", "x", "NOT_STORED\r\n"),
        shape=Shape(f"k VARCHAR(32) NOT NULL, n INT NOT NULL, {COLUMNS}, PRIMARY KEY (k, n)"),
    ),
    case(
        "auto-increment-key",
        "KV-KEY-036",
        store("100", "x"),
        sql("INSERT INTO {t} (v) VALUES ('y')"),
        sql("SELECT k < 100 FROM {t} WHERE v = 'y'", (1,)),
        shape=Shape(f"k INT AUTO_INCREMENT PRIMARY KEY, {COLUMNS}"),
    ),
)
