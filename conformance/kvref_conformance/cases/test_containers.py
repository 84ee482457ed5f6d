"""Rows of `containers` with each error that the manual names, next to valid ones, and unusual names that are valid.

{m} is a valid mapping of {t}; the row of a case is {k2}. Errors that a Shape can express are in other chapters:
key and value columns in `test_key_column.py` and `test_value_column.py`, indexes in `test_key_index.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Setup, Shape, case, send, sql, sql_error
from kvref_conformance.cases.phrases import OPTIONS, hit, mapping, miss, store, unmap, unmapped

if TYPE_CHECKING:
    from kvref_conformance.steps import Sql, Step

COLUMNS = f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}"
ONE = Shape(COLUMNS)
BLANKS = Shape(f"`a key` VARCHAR(32) PRIMARY KEY, `v-x` VARCHAR(40), {OPTIONS}", key="a key", values="v-x")
BLANK_VALUE = Shape(f"k VARCHAR(32) PRIMARY KEY, `v x` VARCHAR(40), {OPTIONS}", values="v x")


def unusable(inserted: Sql) -> tuple[Step, ...]:
    """Insert the row {k2} and want no such mapping, the connection where it was, and other mappings as before."""
    return (
        store("{k}", "x"),
        inserted,
        unmapped("{k2}"),
        hit("{k}", "x"),
        store("@@{m2}.{k}", "2"),
        hit("@@{m}.{k}", "x"),
        unmap("{k2}"),
    )


WRONG = (
    ("missing-database", "KV-CONT-001 KV-CONT-035 KV-CONT-039 KV-CONT-040", mapping("{k2}", schema="kvc_nowhere")),
    ("missing-table", "KV-CONT-002 KV-CONT-035 KV-CONT-039 KV-CONT-040", mapping("{k2}", "kvc_missing")),
    ("missing-key-column", "KV-CONT-003", mapping("{k2}", key="nothing")),
    ("key-column-in-capitals", "KV-CONT-003 KV-CONT-034", mapping("{k2}", key="K")),
    ("missing-value-column", "KV-CONT-004", mapping("{k2}", values="nothing")),
    ("value-column-in-capitals", "KV-CONT-004 KV-CONT-034", mapping("{k2}", values="V")),
    ("one-of-two-value-columns-missing", "KV-CONT-004", mapping("{k2}", values="v,nothing")),
    ("empty-index", "KV-CONT-005", mapping("{k2}", index="")),
    ("missing-index", "KV-CONT-006", mapping("{k2}", index="nothing")),
    ("empty-value-columns", "KV-CONT-007", mapping("{k2}", values="")),
    ("null-value-columns", "KV-CONT-008", mapping("{k2}", values=None)),
    ("empty-key-columns", "KV-CONT-009", mapping("{k2}", key="")),
    ("two-key-columns", "KV-CONT-010", mapping("{k2}", key="k,v")),
    ("empty-table", "KV-CONT-011", mapping("{k2}", "")),
    ("blank-behind-the-table", "KV-CONT-012", mapping("{k2}", "{t} ")),
    ("blank-before-the-key", "KV-CONT-012", mapping("{k2}", key=" k")),
    ("blank-behind-the-key", "KV-CONT-012", mapping("{k2}", key="k ")),
    ("blank-behind-the-index", "KV-CONT-012", mapping("{k2}", index="PRIMARY ")),
    ("key-in-back-quotes", "KV-CONT-013", mapping("{k2}", key="`k`")),
    ("value-in-back-quotes", "KV-CONT-013", mapping("{k2}", values="`v`")),
)

# Names that clients reach by both ways, as by any other.
ODD_NAMES = {"dash": "-", "underscore": "_", "slash": "/", "colon": ":", "comma": ",", "percent": "%", "quote": "''"}


def reach(name: str) -> tuple[Step, ...]:
    """Reach {k} of {t} by `bind` and by `@@` under that name; the row of the name is there."""
    return (
        send(f"bind {{m2}}\r\nbind {name}\r\n", "SUCCEED\r\nSUCCEED\r\n"),
        hit("{k}", "x"),
        send("bind {m2}\r\n", "SUCCEED\r\n"),
        hit(f"@@{name}.{{k}}", "x"),
    )


NAMES = (
    *(
        case(
            f"name-with-{name}",
            "KV-CONT-025",
            store("{k}", "x"),
            mapping(f"{{k2}}{sign}a", "{t}"),
            *reach(f"{{k2}}{sign}a".replace("''", "'")),
            unmap(f"{{k2}}{sign}a"),
            shape=ONE,
        )
        for name, sign in ODD_NAMES.items()
    ),
    case(
        "name-with-a-blank",
        "KV-CONT-026",
        store("{k}", "x"),
        mapping("{k2} a"),
        miss("@@{k2} a.{k}"),
        send("bind {k2} a\r\n", "ERROR\r\n"),
        hit("{k}", "x"),
        unmap("{k2} a"),
        shape=ONE,
    ),
    case(
        "name-with-the-delimiter",
        "KV-CONT-027 KV-CONT-038",
        store("{k}", "x"),
        mapping("{k2}.a"),
        send("bind {m2}\r\nbind {k2}.a\r\n", "SUCCEED\r\nSUCCEED\r\n"),
        hit("{k}", "x"),
        miss("@@{k2}.a.{k}"),
        unmap("{k2}.a"),
        shape=ONE,
    ),
    case(
        "name-with-at-signs",
        "KV-CONT-029",
        store("{k}", "x"),
        mapping("@@{k2}"),
        *reach("@@{k2}"),
        miss("@@{k2}.{k}"),
        unmap("@@{k2}"),
        shape=ONE,
    ),
    case(
        "fifty-mappings",
        "KV-CONT-030",
        store("{k}", "x"),
        *(mapping(f"{{k2}}n{number}") for number in range(50)),
        *(hit(f"@@{{k2}}n{number}.{{k}}", "x") for number in range(50)),
        sql("DELETE FROM {containers} WHERE name LIKE '{k2}n%'"),
        shape=ONE,
    ),
    case(
        "columns-with-blank-and-dash",
        "KV-CONT-032 KV-CONT-041",
        store("{k}", "x"),
        hit("{k}", "x"),
        sql("SELECT `a key`, `v-x` FROM {t}", ("{k}", "x")),
        shape=BLANKS,
    ),
    case("value-column-with-a-blank", "KV-CONT-033", unmapped("{m}"), shape=BLANK_VALUE, bind="m1"),
    case(
        "switch-to-a-wrong-row",
        "KV-CONT-020",
        store("{k}", "x"),
        mapping("{k2}", values="nothing"),
        send("set @@{k2}.{k} 0 0 1\r\ny\r\n", "NOT_FOUND\r\n"),
        hit("{k}", "x"),
        miss("@@{k2}"),
        hit("{k}", "x"),
        send("bind {k2}\r\n", "NOT_FOUND\r\n"),
        hit("{k}", "x"),
        unmap("{k2}"),
        shape=ONE,
    ),
)

# A name that is empty sorts first.
NAMELESS = Setup(containers=(("beta", "t2"), ("", "t1")))
TABLE = f"({COLUMNS})"

TABLES = (
    case(
        "row-with-a-view",
        "KV-CONT-015",
        sql("CREATE VIEW {t}_view AS SELECT * FROM {t}"),
        *unusable(mapping("{k2}", "{t}_view")),
        sql("DROP VIEW {t}_view"),
        shape=ONE,
    ),
    case(
        "row-with-a-partition",
        "KV-CONT-017",
        sql(f"CREATE TABLE {{t}}_p {TABLE} ENGINE=INNODB PARTITION BY KEY (k) PARTITIONS 1"),
        mapping("{k2}", "{t}_p#P#p0"),
        store("@@{k2}.{k}", "x"),
        hit("{k}", "x"),
        sql("SELECT v FROM {t}_p", ("x",)),
        unmap("{k2}"),
        shape=ONE,
        engine="mysql",
    ),
    case(
        "row-with-the-name-of-a-file",
        "KV-CONT-019",
        sql(f"CREATE TABLE `{{t}}-x` {TABLE} ENGINE=INNODB"),
        mapping("{k2}", "{t}-x"),
        unmapped("{k2}"),
        mapping("{k3}", "{t}@002dx"),
        store("@@{k3}.{k}", "x"),
        sql("SELECT v FROM `{t}-x`", ("x",)),
        unmap("{k2}"),
        unmap("{k3}"),
        shape=ONE,
        engine="mysql",
    ),
    case(
        "row-without-a-name",
        "KV-CONT-028 KV-CONT-036 KV-CONT-037",
        send("get kvc-where\r\n", "VALUE kvc-where 0 2\r\nt1\r\nEND\r\n"),
        miss("@@.kvc-where"),
        send("bind \r\n", "ERROR\r\n"),
        send("bind beta\r\nget kvc-where\r\n", "SUCCEED\r\nVALUE kvc-where 0 2\r\nt2\r\nEND\r\n"),
        setup=NAMELESS,
        bind="",
    ),
    case(
        "two-rows-of-one-name",
        "KV-CONT-031",
        mapping("{k2}a"),
        sql_error(mapping("{k2}A").statement),
        unmap("{k2}a"),
        shape=ONE,
    ),
)

CASES = (
    *(case(f"row-with-{name}", requirement, *unusable(inserted), shape=ONE) for name, requirement, inserted in WRONG),
    *NAMES,
    *TABLES,
)
