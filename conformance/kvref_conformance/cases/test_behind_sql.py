"""Behind the protocol: rows as SQL sees them after memcached wrote, and rows that SQL wrote as memcached sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case, send, sql

if TYPE_CHECKING:
    from kvref_conformance.steps import Send, Sql

ROW = "SELECT c1, c2, c3, c5 FROM {t1} WHERE c1 = '{k}'"
COUNT = "SELECT COUNT(*) FROM {t1} WHERE c1 = '{k}'"
# An absolute UNIX time that stays in the future for a while.
LATER = 2000000000


def insert(value: str, flags: str = "0", cas: str = "0", expiry: str = "0") -> Sql:
    """Insert {k} by SQL; the texts are SQL literals."""
    return sql(f"INSERT INTO {{t1}} VALUES ('{{k}}', {value}, {flags}, {cas}, {expiry})")  # noqa: S608 - a template


def hit(value: str, flags: int = 0) -> Send:
    """Get {k} and want that value."""
    return send("get {k}\r\n", f"VALUE {{k}} {flags} {len(value)}\r\n{value}\r\nEND\r\n")


GONE = send("get {k}\r\n", "END\r\n")

WRITTEN = (
    case("row-after-set", "KV-SQL-001", send("set {k} 7 0 3\r\none\r\n", "STORED\r\n"), sql(ROW, ("{k}", "one", 7, 0))),
    case(
        "row-after-add",
        "KV-SQL-001",
        send(f"add {{k}} 0 {LATER} 0\r\n\r\n", "STORED\r\n"),
        sql(ROW, ("{k}", "", 0, LATER)),
    ),
    case(
        "row-after-second-set",
        "KV-SQL-002",
        send("set {k} 7 0 3\r\none\r\n", "STORED\r\n"),
        send("set {k} 8 0 3\r\ntwo\r\n", "STORED\r\n"),
        sql(ROW, ("{k}", "two", 8, 0)),
        sql(COUNT, (1,)),
    ),
    case(
        "cas-column",
        "KV-SQL-003",
        send("set {k} 0 0 1\r\nx\r\n", "STORED\r\n"),
        send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"),
        sql("SELECT c2 FROM {t1} WHERE c1 = '{k}' AND c4 = {a}", ("x",)),
    ),
    case(
        "row-after-delete",
        "KV-SQL-006",
        send("set {k} 0 0 1\r\nx\r\n", "STORED\r\n"),
        send("delete {k}\r\n", "DELETED\r\n"),
        sql(COUNT, (0,)),
    ),
    case(
        "row-after-incr",
        "KV-SQL-007",
        send(f"set {{k}} 5 {LATER} 2\r\n99\r\n", "STORED\r\n"),
        send("incr {k} 1\r\n", "100\r\n"),
        sql(ROW, ("{k}", "100", 5, LATER)),
        send("decr {k} 91\r\n", "9\r\n"),
        sql(ROW, ("{k}", "9", 5, LATER)),
    ),
    case(
        "row-of-the-mapping-only",
        "KV-SQL-011",
        send("set @@{m2}.{k} 0 0 1\r\nx\r\n", "STORED\r\n"),
        sql("SELECT c2 FROM {t2} WHERE c1 = '{k}'", ("x",)),
        sql(COUNT, (0,)),
        sql("SELECT COUNT(*) FROM {t3} WHERE c1 = '{k}'", (0,)),
    ),
    *(
        case(
            f"expiry-after-{verb}",
            "KV-SQL-012",
            send(f"set {{k}} 5 {LATER} 1\r\nx\r\n", "STORED\r\n"),
            send(f"{verb} {{k}} 5 0 1\r\ny\r\n", "STORED\r\n"),
            sql(ROW, ("{k}", value, 5, LATER)),
        )
        for verb, value in (("append", "xy"), ("prepend", "yx"))
    ),
    case(
        "relative-expiry",
        "KV-SQL-013",
        send("set {k} 0 1000 1\r\nx\r\n", "STORED\r\n"),
        sql("SELECT c2 FROM {t1} WHERE c1 = '{k}' AND c5 > 1700000000 AND c5 < 2147483647", ("x",)),
    ),
    case(
        "spelling",
        "KV-SQL-015",
        send("set {k}ab 0 0 1\r\nx\r\n", "STORED\r\n"),
        send("set {k}AB 0 0 1\r\ny\r\n", "STORED\r\n"),
        sql("SELECT c1, c2 FROM {t1} WHERE c1 = '{k}ab'", ("{k}ab", "y")),
    ),
    case(
        "rows-after-flush",
        "KV-SQL-016",
        send("set {k} 0 0 1\r\nx\r\n", "STORED\r\n"),
        send("flush_all\r\n", "OK\r\n", patience=15.0),
        sql("SELECT COUNT(*) FROM {t1}", (0,)),
    ),
    case(
        "text",
        "KV-SQL-017",
        send("set {k} 0 0 5\r\nab-cd\r\n", "STORED\r\n"),
        sql("SELECT LENGTH(c2), UPPER(c2) FROM {t1} WHERE c1 = '{k}'", (5, "AB-CD")),
    ),
    case(
        "row-after-refusals",
        "KV-SQL-018",
        insert("'one'", "3", "77", str(LATER)),
        send("add {k} 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        send("cas {k} 0 0 1 76\r\nx\r\n", "EXISTS\r\n"),
        sql(ROW, ("{k}", "one", 3, LATER)),
        sql("SELECT c4 FROM {t1} WHERE c1 = '{k}'", (77,)),
    ),
)

READ = (
    case("row-of-sql", "KV-SQL-004", insert("'one'", "3"), hit("one", 3)),
    case("row-of-sql-after-a-miss", "KV-SQL-004", GONE, insert("'one'", "3"), hit("one", 3)),
    case(
        "row-of-sql-for-other-verbs",
        "KV-SQL-004",
        insert("'5'"),
        send("add {k} 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        send("incr {k} 1\r\n", "6\r\n"),
        send("append {k} 0 0 1\r\n0\r\n", "STORED\r\n"),
        hit("60"),
        send("delete {k}\r\n", "DELETED\r\n"),
    ),
    case(
        "update-by-sql",
        "KV-SQL-005",
        send("set {k} 0 0 3\r\none\r\n", "STORED\r\n"),
        hit("one"),
        sql("UPDATE {t1} SET c2 = 'three', c3 = 3 WHERE c1 = '{k}'"),
        hit("three", 3),
    ),
    case(
        "delete-by-sql",
        "KV-SQL-005",
        send("set {k} 0 0 3\r\none\r\n", "STORED\r\n"),
        hit("one"),
        sql("DELETE FROM {t1} WHERE c1 = '{k}'"),
        GONE,
        send("add {k} 0 0 1\r\nx\r\n", "STORED\r\n"),
    ),
    case(
        "null-value",
        "KV-SQL-008",
        insert("NULL", "3"),
        hit("", 3),
        send("append {k} 3 0 1\r\nx\r\n", "STORED\r\n"),
        hit("x", 3),
    ),
    case(
        "null-numbers",
        "KV-SQL-009",
        insert("'one'", "NULL", "NULL", "NULL"),
        send("gets {k}\r\n", "VALUE {k} 0 3 0\r\none\r\nEND\r\n"),
        send("cas {k} 4 0 3 0\r\ntwo\r\n", "STORED\r\n"),
        sql(ROW, ("{k}", "two", 4, 0)),
    ),
    case(
        "cas-number-of-sql",
        "KV-SQL-010",
        insert("'one'", "0", "123456789012"),
        send("gets {k}\r\n", "VALUE {k} 0 3 123456789012\r\none\r\nEND\r\n"),
        send("cas {k} 0 0 1 123456789011\r\nx\r\n", "EXISTS\r\n"),
        send("cas {k} 0 0 1 123456789012\r\nx\r\n", "STORED\r\n"),
        hit("x"),
    ),
    case(
        "expiry-of-sql",
        "KV-SQL-014 KV-SQL-020",
        send("set {k} 0 0 1\r\nx\r\n", "STORED\r\n"),
        sql("UPDATE {t1} SET c5 = 1000000000 WHERE c1 = '{k}'"),
        GONE,
        sql("UPDATE {t1} SET c5 = -1 WHERE c1 = '{k}'"),
        hit("x"),
    ),
    case(
        "mapped-row-of-sql",
        "KV-SQL-004",
        sql("INSERT INTO {t2} VALUES ('{k}', 'two', 2, 0, 0)"),
        send("get @@{m2}.{k}\r\n", "VALUE @@{m2}.{k} 2 3\r\ntwo\r\nEND\r\n"),
    ),
)

CASES = (*WRITTEN, *READ)
