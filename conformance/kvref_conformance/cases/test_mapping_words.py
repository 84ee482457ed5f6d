"""What counts as a word of a mapping: unknown and empty names, one letter, at signs and delimiters in odd places."""

from __future__ import annotations

from typing import Final

from kvref_conformance.case import case, send, sql
from kvref_conformance.cases.phrases import EVERYWHERE, hit, miss, store

# What follows the key of these commands.
AMOUNTS: Final = {"delete": "", "incr": " 1", "decr": " 1"}

REFUSED = (
    case(
        "get-unknown",
        "KV-MAP-010",
        *EVERYWHERE,
        miss("@@{m2}x.{k}"),
        hit("{k}", "1"),
        miss("@@{m2}x"),
        hit("{k}", "1"),
    ),
    case(
        "get-unknown-after-a-switch",
        "KV-MAP-010",
        *EVERYWHERE,
        hit("@@{m2}.{k}", "2"),
        miss("@@no-such.{k}"),
        hit("{k}", "2"),
    ),
    *(
        case(
            f"{verb}-unknown",
            "KV-MAP-011",
            store("{k}", "1"),
            send(f"{verb} @@no-such.{{k}} 0 0 1{' 1' if verb == 'cas' else ''}\r\nx\r\n", "NOT_FOUND\r\n"),
            hit("{k}", "1"),
        )
        for verb in ("set", "add", "replace", "append", "prepend", "cas")
    ),
    case(
        "set-unknown-noreply",
        "KV-MAP-030",
        store("{k}", "1"),
        send("set @@no-such.{k} 0 0 1 noreply\r\nx\r\n", ""),
        hit("{k}", "1"),
        miss("@@no-such.{k}"),
    ),
    case(
        "set-switch-word",
        "KV-MAP-014",
        *EVERYWHERE,
        send("set @@{m2} 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        hit("{k}", "2"),
    ),
    case(
        "set-empty-key",
        "KV-MAP-015",
        *EVERYWHERE,
        send("set @@{m2}. 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        hit("@@{m2}.{k}", "2"),
        sql("SELECT COUNT(*) FROM {t2} WHERE c1 = ''", (0,)),
    ),
    case(
        "set-empty-key-refused",
        "KV-MAP-047",
        *EVERYWHERE,
        send("set @@{m2}. 0 0 1\r\nx\r\n", "CLIENT_ERROR <text>\r\n"),
        hit("@@{m2}.{k}", "2"),
        sql("SELECT COUNT(*) FROM {t2} WHERE c1 = ''", (0,)),
    ),
    *(
        case(
            f"{verb}-switch-word",
            "KV-MAP-048",
            *EVERYWHERE,
            send(f"{verb} @@{{m2}}{rest}\r\n", "NOT_FOUND\r\n"),
            hit("{k}", "2"),
        )
        for verb, rest in AMOUNTS.items()
    ),
    *(
        case(
            f"{verb}-empty-key",
            "KV-MAP-049",
            *EVERYWHERE,
            send(f"{verb} @@{{m2}}.{rest}\r\n", "CLIENT_ERROR <text>\r\n"),
            hit("@@{m2}.{k}", "2"),
            hit("@@{m1}.{k}", "1"),
        )
        for verb, rest in AMOUNTS.items()
    ),
)

WORDS = (
    case(
        "one-letter-switch-word",
        "KV-MAP-016",
        *EVERYWHERE,
        send("get @@{q}\r\n", "VALUE @@{q} 0 {#w3}\r\n{w3}\r\nEND\r\n"),
        hit("{k}", "3"),
    ),
    case("one-letter-key", "KV-MAP-017", *EVERYWHERE, hit("@@{q}.{k}", "3"), hit("{k}", "3")),
    case(
        "name-in-capitals",
        "KV-MAP-018",
        *EVERYWHERE,
        send("get @@{m2up}.{k}\r\n", "VALUE @@{m2up}.{k} 0 1\r\n2\r\nEND\r\n"),
        hit("{k}", "2"),
    ),
    case(
        "key-with-delimiter",
        "KV-MAP-019",
        store("@@{m2}.{k}.b", "x"),
        hit("{k}.b", "x"),
        store("@@{m2}..{k}", "y"),
        hit(".{k}", "y"),
    ),
    case(
        "key-with-a-word",
        "KV-MAP-020",
        store("@@{m2}.@@{q}.{k}", "x"),
        hit("@@{m2}.@@{q}.{k}", "x"),
        store("{k}", "2"),
        miss("@@{q}.{k}"),
    ),
    case("three-at-signs", "KV-MAP-021", *EVERYWHERE, miss("@@@{m2}.{k}"), hit("{k}", "1")),
    case(
        "one-at-sign",
        "KV-MAP-022",
        store("@{m2}.{k}", "x"),
        store("{k}", "1"),
        hit("@{m2}.{k}", "x"),
        hit("{k}", "1"),
    ),
    case("longer-name", "KV-MAP-023", *EVERYWHERE, miss("@@{m2}2.{k}"), hit("{k}", "1")),
    case("shorter-name", "KV-MAP-023", *EVERYWHERE, miss("@@{m2cut}.{k}"), hit("{k}", "1")),
    case(
        "empty-name",
        "KV-MAP-024",
        *EVERYWHERE,
        miss("@@.{k}"),
        send("set @@.{k} 0 0 1\r\nx\r\n", "NOT_FOUND\r\n"),
        hit("{k}", "1"),
    ),
    case("delimiter-in-front", "KV-MAP-025", *EVERYWHERE, miss("@@.{m2}.{k}"), hit("{k}", "1")),
    case(
        "two-at-signs-alone",
        "KV-MAP-026",
        store("@@", "x"),
        hit("@@", "x"),
        send("delete @@\r\n", "DELETED\r\n"),
        miss("@@"),
    ),
    case(
        "word-of-249-bytes",
        "KV-MAP-032",
        *EVERYWHERE,
        send("get {w249}\r\n", "END\r\n"),
        hit("{k}", "2"),
    ),
    case(
        "word-of-300-bytes",
        "KV-MAP-033",
        *EVERYWHERE,
        send("get @@{m2}.{x~300}\r\n", "CLIENT_ERROR <text>\r\n"),
        hit("{k}", "1"),
    ),
)

CASES = (*REFUSED, *WORDS)
