"""Types of value column that no mapping should use: as SQL shows them or refused, and what the plugin makes of them."""

from __future__ import annotations

from kvref_conformance.case import case, send, sql
from kvref_conformance.cases.phrases import hit, insert, miss, store, try_store, type_name, unmapped, value_table

UNUSABLE = (
    *(
        case(
            f"{type_name(declared)}-value-as-sql-shows-it",
            "KV-TYPE-019",
            insert("{k}", f"'{text}'", "0, 0, 0"),
            send("get @@{m}.{k}\r\n", (f"VALUE @@{{m}}.{{k}} 0 {len(text)}\r\n{text}\r\nEND\r\n", "END\r\n")),
            shape=value_table(declared),
            bind="m1",
        )
        for declared, text in (
            ("MEDIUMINT", "5"),
            ("BINARY(2)", "ab"),
            ("DECIMAL(8,2)", "12.50"),
            ("FLOAT", "1.5"),
            ("DOUBLE", "1.5"),
            ("DATE", "2021-02-03"),
            ("DATETIME", "2021-02-03 04:05:06"),
            ("TIME", "04:05:06"),
            ("ENUM('a','b')", "b"),
            ("YEAR", "2021"),
        )
    ),
    *(
        case(
            f"{kind.lower()}-generated-value",
            "KV-TYPE-033",
            unmapped("{m}"),
            shape=value_table(f"VARCHAR(40) AS (CONCAT(k, 'x')) {kind}"),
            bind="m1",
        )
        for kind in ("VIRTUAL", "STORED")
    ),
)

# What {m} answers of a row of SQL: bytes as InnoDB keeps them, or the number of a member.
RAW = (
    *(
        case(
            f"{type_name(declared)}-value-raw",
            requirement,
            insert("{k}", literal, "0, 0, 0"),
            hit("{k}", shown),
            shape=value_table(declared),
        )
        for requirement, declared, literal, shown in (
            ("KV-TYPE-014", "DECIMAL(8,2)", "12.50", "\x80\0\x0c2"),
            ("KV-TYPE-014", "BINARY(4)", "'ab'", "ab\0\0"),
            ("KV-TYPE-015", "FLOAT", "1.5", "\0\0\xc0?"),
            ("KV-TYPE-015", "DOUBLE", "1.5", "\0\0\0\0\0\0\xf8?"),
            ("KV-TYPE-017", "ENUM('a','b')", "'b'", "2"),
            ("KV-TYPE-017", "YEAR", "2020", "120"),
        )
    ),
    *(
        case(
            f"{declared.lower()}-value-not-stored",
            "KV-TYPE-015",
            try_store("{k}", "1.5", "NOT_STORED\r\n"),
            miss("{k}"),
            shape=value_table(declared),
        )
        for declared in ("FLOAT", "DOUBLE")
    ),
    case(
        "enum-value-by-number",
        "KV-TYPE-017",
        store("{k}", "2"),
        sql("SELECT v FROM {t}", ("b",)),
        try_store("{k2}", "b", "NOT_STORED\r\n"),
        shape=value_table("ENUM('a','b')"),
    ),
    case(
        "virtual-value",
        "KV-TYPE-031",
        unmapped("{m}"),
        shape=value_table("VARCHAR(40) AS (CONCAT(k, 'x')) VIRTUAL"),
        bind="m1",
    ),
    case(
        "virtual-column-beside",
        "KV-TYPE-031",
        unmapped("{m}"),
        shape=value_table("VARCHAR(40)", ", g INT AS (f + 1) VIRTUAL"),
        bind="m1",
    ),
    case(
        "json-value-raw",
        "KV-TYPE-016",
        insert("{k}", "'5'", "0, 0, 0"),
        hit("{k}", "\x05\x05\0"),
        shape=value_table("JSON"),
        engine="mysql",
    ),
    case(
        "stored-generated-value-written",
        "KV-TYPE-032",
        store("{k}", "y"),
        hit("{k}", "y"),
        shape=value_table("VARCHAR(40) AS (CONCAT(k, 'x')) STORED"),
        engine="mysql",
    ),
)

CASES = (*UNUSABLE, *RAW)
