"""Generate docs/differences-from-memcached.md: `python tests/differences.py` writes it."""

from __future__ import annotations

import tomllib
from pathlib import Path

from kvref import profiles

ROOT = Path(__file__).parent.parent
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
again, run `python tests/differences.py`.

Details of expiry times and meta commands, such as marks that a restart removes, are in
[Deliberate differences from memcached](reference/protocol.md#deliberate-differences-from-memcached).

## Consequences of SQL tables

| subject | kvref | memcached |
|---|---|---|
| Keys that are not UTF-8 | need a VARBINARY key column, as `kvref init --cache` creates it, or a CHAR or VARCHAR key column with a one-byte character set and a binary collation, e.g. `latin1_bin`; key columns of other text refuse them, and a key column cannot be BINARY or BLOB | any bytes but space and control characters |
| Equality of keys | follows the collation of the key column: with a collation that ignores case, `Key` and `key` are one item | bytes |
| Length of keys | at most the length of the key column | 250 bytes |
| Values | must fit the value columns: a text column refuses bytes that are not text of its character set | any bytes up to the item size |
| Flags, CAS, expiry | need a column each in the mapping | always there |
| Memory | rows are kept until they are deleted: no slabs, no LRU, no eviction; settings and statistics of these do not apply | `-m`, slab classes, LRU |
| `lru_crawler metadump all` | lists the keys of the mapping in force in their order, page by page, among pipelined commands too; `la` is the time of the listing, `fetch` is no, `cls` is 0, `size` is the bytes of key and value | lists all items in no order, refuses to do so behind pipelined commands; one listing at a time |
| `curr_items` | rows of the mapping in force, expired ones included: exact up to 1,000, an estimate beyond | items of the server |
| `get_expired`, `get_flushed` | a row that is expired stays and is counted at each look-up; `flush_all` deletes rows, so that `get_flushed` is 0 | an item is removed by the look-up that counts it |
| `stats conns` | connections of the process that answers | all connections |
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
