"""What counts at once and what at the next reload: rows of `containers` and options that change while in use.

Tables that change: `test_tables_changed.py`.
{k} is 1 in {t1} and 2 in {t2}; the row of a case is {k2}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Setup, Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, map_table, mapping, miss, store, unmap, unmapped
from kvref_conformance.steps import Reload

if TYPE_CHECKING:
    from kvref_conformance.steps import Send, Sql

COLUMNS = f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}"
ONE = Shape(COLUMNS)
# Setups of one case each: what one changes is written again for the next.
DEFAULTS = {
    name: Setup(containers=(("beta", "t2"), (name, "t1")))
    for name in ("delta-a", "delta-b", "delta-c", "delta-d", "delta-e", "delta-f")
}
OPTION = Setup(others=(("kvc_reload", "x"),))
BOTH = (store("@@{m2}.{k}", "2"), store("@@{m1}.{k}", "1"))


def remap(name: str, table: str) -> Sql:
    """Let the row of that name lead to another table."""
    return sql(f"UPDATE {{containers}} SET db_table = '{table}' WHERE name = '{name}'")  # noqa: S608 - a template


def table(table: str, word: str = "kvc-where", on: str = "a") -> Send:
    """Want a plain key, or a word, to be answered by that table."""
    return send(f"get {word}\r\n", f"VALUE {word} 0 2\r\n{table}\r\nEND\r\n", on=on)


ROWS = (
    case(
        "repaired-row",
        "KV-LIFE-002",
        *BOTH,
        mapping("{k2}", "{t1}", key="c1", values="nothing"),
        unmapped("{k2}"),
        sql("UPDATE {containers} SET value_columns = 'c2' WHERE name = '{k2}'"),
        hit("@@{k2}.{k}", "1"),
        unmap("{k2}"),
    ),
    case(
        "table-made-later",
        "KV-LIFE-002",
        mapping("{k2}", "{t}_later"),
        unmapped("{k2}"),
        sql(f"CREATE TABLE {{t}}_later ({COLUMNS})"),
        store("@@{k2}.{k}", "x"),
        hit("{k}", "x"),
        unmap("{k2}"),
        shape=ONE,
    ),
    case(
        "changed-row",
        "KV-LIFE-003",
        *BOTH,
        map_table("{k2}", "{t1}"),
        hit("@@{k2}.{k}", "1"),
        remap("{k2}", "{t2}"),
        hit("@@{k2}.{k}", "1"),
        hit("@@{k2}.{k}", "1", on="b"),
        hit("@@{m2}.{k}", "2"),
        hit("@@{k2}.{k}", "1"),
        Reload(),
        hit("@@{k2}.{k}", "2"),
        unmap("{k2}"),
    ),
    case(
        "changed-columns",
        "KV-LIFE-003",
        sql("INSERT INTO {t1} VALUES ('{k}', '1', 7, 0, 0)"),
        map_table("{k2}", "{t1}"),
        hit("@@{k2}.{k}", "1", flags=7),
        sql("UPDATE {containers} SET flags = '0' WHERE name = '{k2}'"),
        hit("@@{k2}.{k}", "1", on="b", flags=7),
        Reload(),
        hit("@@{k2}.{k}", "1"),
        unmap("{k2}"),
    ),
    case(
        "renamed-row",
        "KV-LIFE-004 KV-LIFE-005",
        *BOTH,
        map_table("{k2}", "{t2}"),
        hit("@@{k2}.{k}", "2"),
        sql("UPDATE {containers} SET name = '{k3}' WHERE name = '{k2}'"),
        hit("@@{m1}.{k}", "1"),
        hit("@@{k2}.{k}", "2"),
        hit("@@{k3}.{k}", "2", on="b"),
        Reload(),
        unmapped("{k2}"),
        hit("@@{k3}.{k}", "2"),
        unmap("{k3}"),
    ),
    case(
        "deleted-row",
        "KV-LIFE-006",
        *BOTH,
        map_table("{k2}", "{t2}"),
        hit("@@{k2}.{k}", "2"),
        unmap("{k2}"),
        hit("@@{m1}.{k}", "1"),
        hit("@@{k2}.{k}", "2"),
        hit("@@{k2}.{k}", "2", on="b"),
    ),
    case(
        "deleted-row-after-a-reload",
        "KV-LIFE-007",
        *BOTH,
        map_table("{k2}", "{t2}"),
        hit("@@{k2}.{k}", "2"),
        unmap("{k2}"),
        Reload(),
        unmapped("{k2}"),
    ),
    case(
        "row-changed-before-its-use",
        "KV-LIFE-008",
        *BOTH,
        map_table("{k2}", "{t1}"),
        remap("{k2}", "{t2}"),
        hit("@@{k2}.{k}", "2"),
        unmap("{k2}"),
    ),
    case(
        "row-read-anew-under-another-spelling",
        "KV-LIFE-009",
        *BOTH,
        map_table("{k2}q", "{t1}"),
        hit("@@{k2}q.{k}", "1"),
        remap("{k2}q", "{t2}"),
        hit("@@{k2}Q.{k}", "2", on="b"),
        hit("@@{k2}q.{k}", "1"),
        unmap("{k2}q"),
    ),
    case(
        "row-not-read-anew-under-another-spelling",
        "KV-LIFE-011",
        *BOTH,
        map_table("{k2}q", "{t1}"),
        hit("@@{k2}q.{k}", "1"),
        remap("{k2}q", "{t2}"),
        hit("@@{k2}Q.{k}", "1", on="b"),
        hit("@@{k2}q.{k}", "1"),
        Reload(),
        hit("@@{k2}Q.{k}", "2", on="b"),
        unmap("{k2}q"),
    ),
)

DEFAULT_ROW = (
    case(
        "default-row-read-anew",
        "KV-LIFE-010",
        table("t2"),
        remap("beta", "{t1}"),
        table("t2", on="b"),
        table("t1", "@@beta.kvc-where", on="c"),
        table("t1", on="c"),
        setup=DEFAULTS["delta-a"],
        bind="",
    ),
    case(
        "default-row-not-read-anew",
        "KV-LIFE-011",
        table("t2"),
        remap("beta", "{t1}"),
        table("t2", on="b"),
        table("t2", "@@beta.kvc-where", on="c"),
        table("t2", on="c"),
        Reload(),
        table("t1"),
        setup=DEFAULTS["delta-b"],
        bind="",
    ),
    case(
        "default-row-deleted",
        "KV-LIFE-012",
        unmap("beta"),
        table("t2"),
        table("t2", on="b"),
        Reload(),
        table("t1"),
        setup=DEFAULTS["delta-c"],
        bind="",
    ),
    case(
        "default-row-inserted",
        "KV-LIFE-013",
        map_table("default", "{t3}"),
        table("t2"),
        table("t2", on="b"),
        Reload(),
        table("t3"),
        setup=DEFAULTS["delta-d"],
        bind="",
    ),
    case(
        "default-of-open-connections",
        "KV-LIFE-034",
        table("t2"),
        table("t2", on="b"),
        send("version\r\n", "VERSION <text>\r\n", on="c"),
        map_table("default", "{t3}"),
        Reload(),
        *(table("t3", on=name) for name in ("a", "b", "c")),
        setup=DEFAULTS["delta-f"],
        bind="",
    ),
    case(
        "delimiter-changed",
        "KV-LIFE-015",
        *BOTH,
        sql("UPDATE {options} SET value = ':' WHERE name = 'table_map_delimiter'"),
        hit("@@{m2}.{k}", "2"),
        miss("@@{m2}:{k}"),
        hit("@@{m2}.{k}", "2", on="b"),
        Reload(),
        hit("@@{m2}:{k}", "2"),
        setup=OPTION,
    ),
)

CASES = (*ROWS, *DEFAULT_ROW)
