"""Generate docs/differences-from-memcached.md: `PYTHONPATH=docs python -m generators.memcached` writes it."""

from __future__ import annotations

import tomllib
from pathlib import Path

from kvref import profiles

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "differences-from-memcached.md"
# Reasons of facts for which the profiles state none.
REASONS = {
    "arith.decr_pads": "the value of a row is the number; padding would be stored for SQL to read",
    "binary.texts": "the plugin's texts, which the default profile keeps",
    "binary.time": "a client that means -1 sends 4294967295, and one time means the same in both protocols",
    "mapping.supported": "mappings are what kvref is for",
    "range.supported": "ranges of rows are a feature of the plugin",
    "store.surrogates": "SQL servers refuse them in UTF-8 columns",
}
HEAD = """# Differences from memcached

This page is generated from the facts of the profiles `kvref` (the default) and `memcached` (memcached 1.6.18). To write it
again, run `PYTHONPATH=docs python -m generators.memcached`.

Details of expiry times and meta commands, such as marks that a restart removes, are in
[Deliberate differences from memcached](reference/protocol.md#deliberate-differences-from-memcached).

## Consequences of SQL tables

| subject | kvref | memcached |
|---|---|---|
| Keys that are not UTF-8 | need a VARBINARY key column, as `kvref init --cache` creates it, or a CHAR or VARCHAR key column with a one-byte character set and a binary collation, e.g. `latin1_bin`; key columns of other text refuse them, and a key column cannot be BINARY or BLOB | any bytes but space and control characters |
| Equality of keys | follows the collation of the key column: with a collation that ignores case, `Key` and `key` are one item | bytes |
| Length of keys | at most the length of the key column | 250 bytes |
| Values | must fit the value columns: a text column refuses bytes that are not text of its character set | any bytes up to the item size |
| Largest value | 1,048,576 bytes by default, whatever the key: `item_size_max` limits the value. A client that relies on the refusal of a larger item than memcached's gets it stored, and can read it | 1,048,516 bytes by default with a key of one byte: `-I` limits the item, in which 59 bytes and the key count, and 4 bytes of flags other than 0 |
| `append`, `prepend` beyond the largest value | `SERVER_ERROR object too large for cache`; the item stays | `NOT_STORED`; the item stays |
| Flags, CAS, expiry | need a column each in the mapping | always there |
| Memory | rows are kept until they are deleted: no slabs, no LRU, no eviction; settings and statistics of these do not apply | `-m`, slab classes, LRU |
| `lru_crawler metadump all` | lists the keys of the mapping in force in their order, page by page, among pipelined commands too; `la` is the time of the listing, `fetch` is no, `cls` is 0, `size` is the bytes of key and value | lists all items in no order, refuses to do so behind pipelined commands; one listing at a time |
| `curr_items` | rows of the mapping in force, expired ones included: exact up to 1,000, an estimate beyond | items of the server |
| `get_expired`, `get_flushed` | a row that is expired stays and is counted at each look-up; `flush_all` deletes rows, so that `get_flushed` is 0 | an item is removed by the look-up that counts it |
| `stats conns` | connections of the process that answers | all connections |
| `slabs`, `lru`, `extstore` | unknown commands: `ERROR`; `cache_memlimit` and the settings of `lru_crawler` reply `OK` and change nothing | set memory management |
| `watch` | unknown command: `ERROR`; metrics and log are outside the protocol | sends log lines to the connection |
| `refresh_certs` with TLS | `CLIENT_ERROR refresh_certs not allowed: SIGHUP reads certificates again` | reads certificates again, `OK` |
| `shutdown` | `ERROR: shutdown not enabled`; there is no option to allow it | the same without `-A`; with it, the server stops |
| `stats sizes`, `sizes_enable`, `sizes_disable`, `extstore`, `proxy` | no rows: there are no slabs; the last two are unknown: `ERROR` | states and rows |
| `stats` | without rows of memory, slabs, LRU, hash table, log watchers, read buffers and response objects; with further rows | all rows |
| `stats settings` | rows of settings that kvref has; those of TLS only if a listener has TLS, without `ssl_wbuf_size` | all rows |
| `flush_enabled`, `dump_enabled` of `stats settings` | what the requesting connection may do | options of the server |
| `l` and `la` of an item that was read twice | every later read sets the time; of an item of which the server knows no access they count from its start | an active item keeps its time until the LRU moves it |
| `mg KEY T-1 t` | an item that is expired at once has 0 seconds left | 2^32 less the seconds since the start, or -1 |
| `@@name` | switches to a mapping | part of the key |

## Facts that differ

"""


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def page() -> str:
    """Return the page as the profiles of this version make it."""
    own, native = profiles.load("kvref"), profiles.load("memcached")
    vocabulary = tomllib.loads((ROOT / "kvref" / "profiles" / "facts.toml").read_text())
    rows = ["| fact | meaning | kvref | memcached | reason |", "|---|---|---|---|---|"]
    for key in sorted(own.facts):
        ours, theirs = own.facts[key], native.facts[key]
        if ours.value != theirs.value:
            cells = (
                f"`{key}`",
                vocabulary[key]["means"],
                f"`{ours.value}`",
                f"`{theirs.value}`",
                ours.reason or REASONS.get(key, ""),
            )
            rows.append(f"| {' | '.join(map(_cell, cells))} |")
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
