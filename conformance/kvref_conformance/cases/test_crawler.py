"""`lru_crawler`: the listing of all keys by `metadump`, and what is said of slab classes.

memcached answers a listing behind the commands that follow it, so that only its refusals are judged there.
"""

from __future__ import annotations

from typing import Final

from kvref_conformance.case import case, eventually, send
from kvref_conformance.cases.phrases import store

EMPTY: Final = send("flush_all\r\n", "OK\r\n", patience=15.0)
DISABLED: Final = "CLIENT_ERROR lru crawler disabled\r\n"
RUNS: Final = "ERROR failed to start lru crawler thread\r\n"
UNKNOWN: Final = "BADCLASS invalid class id\r\n"
MALFORMED: Final = "CLIENT_ERROR bad command line format\r\n"
LONG: Final = "CLIENT_ERROR sleep must be one second or less\r\n"


def crawler_line(key: str, size: str = "<number>") -> str:
    """Return the line of an item that is never expired."""
    return f"key={key} exp=-1 la=<number> cas=<number> fetch=no cls=0 size={size}\n"


CASES = (
    case(
        "metadump",
        "KV-CRAWL-001",
        EMPTY,
        send("lru_crawler metadump all\r\n", "END\r\n"),
        store("{k}", "12345"),
        send("lru_crawler metadump all\r\n", crawler_line("{k}") + "END\r\n"),
        send("lru_crawler metadump hash\r\n", crawler_line("{k}") + "END\r\n"),
        send("set {k} 0 2000000000 1\r\nx\r\n", "STORED\r\n"),
        send("lru_crawler metadump all\r\n", crawler_line("{k}").replace("exp=-1", "exp=2000000000") + "END\r\n"),
        store("{k}", "1"),
        store("{k2}", "2"),
        send(
            "lru_crawler metadump all\r\n",
            tuple(crawler_line(a) + crawler_line(b) + "END\r\n" for a, b in (("{k}", "{k2}"), ("{k2}", "{k}"))),
        ),
    ),
    case(
        "metadump-size",
        "KV-CRAWL-001",
        EMPTY,
        store("abc", "12345"),
        send("lru_crawler metadump all\r\n", crawler_line("abc", "8") + "END\r\n"),
        send("delete abc\r\n", "DELETED\r\n"),
    ),
    case(
        "metadump-encodes",
        "KV-CRAWL-002",
        EMPTY,
        store("{k}-._~%a&b=c+/", "x"),
        send("lru_crawler metadump all\r\n", crawler_line("{k}-._~%25a%26b%3Dc%2B%2F") + "END\r\n"),
    ),
    case(
        "metadump-without-expired-items",
        "KV-CRAWL-003",
        EMPTY,
        store("{k}", "x"),
        send("set {k2} 0 -1 1\r\nx\r\n", "STORED\r\n"),
        send("lru_crawler metadump all\r\n", crawler_line("{k}") + "END\r\n"),
    ),
    case(
        "metadump-of-classes",
        "KV-CRAWL-004",
        store("{k}", "x"),
        send("lru_crawler metadump 1\r\nlru_crawler metadump 63\r\nlru_crawler metadump 1,,2,\r\n", "END\r\n" * 3),
    ),
    case(
        "crawler-of-unknown-classes",
        "KV-CRAWL-005",
        *(
            send(f"lru_crawler {verb} {word}\r\n", UNKNOWN)
            for verb in ("metadump", "crawl")
            for word in ("0", "64", "x", "1x", "allx", "63,x", "noreply")
        ),
    ),
    case(
        "crawler-malformed",
        "KV-CRAWL-006",
        *(
            send(f"lru_crawler{words}\r\n", "ERROR\r\n")
            for words in (
                *("", " foo", " foo bar", " enable x", " disable x", " enable noreply", " metadump", " metadump all x"),
                *(
                    " metadump all noreply",
                    " crawl",
                    " crawl 1 2",
                    " sleep",
                    " sleep 0 1",
                    " sleep 0 noreply",
                    " tocrawl",
                ),
                *(" tocrawl 0 1", " mgdump", " mgdump all", " mgdump hash"),
            )
        ),
    ),
    case(
        "crawler-settings",
        "KV-CRAWL-007 KV-CRAWL-011 KV-CRAWL-012",
        send("lru_crawler sleep 1000000\r\nlru_crawler sleep 0\r\nlru_crawler sleep 4294967296\r\n", "OK\r\n" * 3),
        send("lru_crawler sleep 1000001\r\n", LONG),
        send("lru_crawler sleep x\r\nlru_crawler sleep -1\r\nlru_crawler sleep 1x\r\n", MALFORMED * 3),
        send("lru_crawler tocrawl 1\r\nlru_crawler tocrawl 4294967295\r\nlru_crawler tocrawl 0\r\n", "OK\r\n" * 3),
        send("lru_crawler tocrawl x\r\nlru_crawler tocrawl -1\r\n", MALFORMED * 2),
    ),
    case(
        "crawler-disabled",
        "KV-CRAWL-008 KV-CRAWL-013",
        send("lru_crawler enable\r\n", RUNS),
        send("lru_crawler disable\r\nlru_crawler disable\r\n", "OK\r\n" * 2),
        # memcached replies before its crawler's thread has ended.
        eventually(
            send(
                "lru_crawler metadump all\r\nlru_crawler metadump x\r\nlru_crawler crawl all\r\n", DISABLED * 3, on="b"
            )
        ),
        send("lru_crawler metadump\r\nlru_crawler sleep 0\r\n", "ERROR\r\nOK\r\n", on="b"),
        send("lru_crawler enable\r\n", "OK\r\n", on="b"),
        send("lru_crawler metadump x\r\nlru_crawler enable\r\n", UNKNOWN + RUNS),
    ),
    case("crawler-crawls", "KV-CRAWL-009", send("lru_crawler crawl 63\r\n", "OK\r\n")),
    case(
        "metadump-pipelined",
        "KV-CRAWL-010",
        EMPTY,
        send(
            "set {k} 0 0 1\r\nx\r\nlru_crawler metadump all\r\nget {k}\r\nlru_crawler metadump all\r\nget {k2}\r\n",
            "STORED\r\n"
            + crawler_line("{k}")
            + "END\r\nVALUE {k} 0 1\r\nx\r\nEND\r\n"
            + crawler_line("{k}")
            + "END\r\nEND\r\n",
        ),
    ),
)
