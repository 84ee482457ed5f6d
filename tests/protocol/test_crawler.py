"""`lru_crawler`: lines to commands, and listings to bytes; ids in brackets name recordings."""

from __future__ import annotations

import pytest

from kvref import profiles
from kvref.protocol import commands as c
from kvref.protocol.crawler import LONG_SLEEP
from kvref.protocol.grammar import BAD_FORMAT, ERROR
from kvref.protocol.rules import wire_rules
from kvref.protocol.text import parse_line

RULES = wire_rules(profiles.load("kvref"), 1 << 20)
ALL, CLASSES, NOTHING, UNKNOWN = c.Crawled


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (b"lru_crawler metadump all", c.KeyDump(ALL)),
        (b"lru_crawler  metadump  hash", c.KeyDump(ALL)),
        (b"lru_crawler metadump 1,2", c.KeyDump(CLASSES)),
        (b"lru_crawler metadump ,63,", c.KeyDump(CLASSES)),
        (b"lru_crawler metadump 4294967359", c.KeyDump(CLASSES)),
        (b"lru_crawler metadump ,", c.KeyDump(NOTHING)),
        (b"lru_crawler metadump 0", c.KeyDump(UNKNOWN)),
        (b"lru_crawler metadump 64", c.KeyDump(UNKNOWN)),
        (b"lru_crawler metadump 1,x", c.KeyDump(UNKNOWN)),
        (b"lru_crawler metadump -1", c.KeyDump(UNKNOWN)),
        (b"lru_crawler metadump ALL", c.KeyDump(UNKNOWN)),
        (b"lru_crawler crawl 63", c.Crawl(CLASSES)),
        (b"lru_crawler enable", c.SwitchCrawler(enabled=True)),
        (b"lru_crawler disable", c.SwitchCrawler(enabled=False)),
        (b"lru_crawler sleep 1000000", c.TuneCrawler()),
        (b"lru_crawler sleep 4294967296", c.TuneCrawler()),
        (b"lru_crawler sleep 1000001", c.Refused(LONG_SLEEP)),
        (b"lru_crawler sleep 5000000000", c.Refused(LONG_SLEEP)),
        (b"lru_crawler sleep -1", c.Refused(BAD_FORMAT)),
        (b"lru_crawler tocrawl 18446744073709551615", c.TuneCrawler()),
        (b"lru_crawler tocrawl 18446744073709551616", c.Refused(BAD_FORMAT)),
        (b"lru_crawler", c.Refused(ERROR)),
        (b"lru_crawler mgdump all", c.Refused(ERROR)),
        (b"lru_crawler metadump all x", c.Refused(ERROR)),
        (b"lru_crawler metadump", c.Refused(ERROR)),
        (b"lru_crawler enable noreply", c.Refused(ERROR)),
    ],
)
def test_lines(line: bytes, command: c.Command) -> None:
    assert parse_line(line, RULES) == command  # [crawler-001, crawler-002]


@pytest.mark.parametrize("profile", ["mysql-8.0", "mysql-5.6"])
def test_the_plugin_does_not_have_it(profile: str) -> None:
    plugin = wire_rules(profiles.load(profile), 1 << 20)
    assert parse_line(b"lru_crawler metadump all", plugin) == c.Refused(ERROR)
