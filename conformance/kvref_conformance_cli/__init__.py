"""The commands of suite and testbed, the only code that uses both.

`kvref` finds them by the entry point `kvref.commands`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref.cli.registry import JUDGE, MAINTAIN, Entry

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMANDS: Final[Mapping[str, Entry]] = {
    "conform": Entry(
        "kvref_conformance_cli.conform", JUDGE,
        "Judge the endpoint HOST:PORT or unix:PATH. Without an address, judge the embedded server over SQLite.",
        "conformance",
    ),
    "conform-client": Entry(
        "kvref_conformance_cli.conform_client", JUDGE,
        "Judge memcached clients: a scripted server sends them split, late, wrong and missing replies.", "conformance",
    ),
    "matrix": Entry(
        "kvref_conformance_cli.matrix", JUDGE, "Compare reports side by side: requirements by endpoint.", "conformance"
    ),
    "target": Entry(
        "kvref_conformance_cli.target", MAINTAIN,
        "Start and stop real endpoints: the MySQL plugin, memcached, kvref, and SQL servers without the plugin.",
        "conformance",
    ),
    "record": Entry(
        "kvref_conformance_cli.record", MAINTAIN,
        "Run the conversations of SCRIPTS.jsonl twice on each target and record the replies. Or record real traffic.",
        "conformance",
    ),
    "replay": Entry(
        "kvref_conformance_cli.replay", MAINTAIN,
        "Replay recorded conversations and compare every reply. Default: all of them, on kvref over SQLite.",
        "conformance",
    ),
    "duel": Entry(
        "kvref_conformance_cli.duel", MAINTAIN,
        "Run generated conversations on the targets A and B in parallel and compare every reply and every row.",
        "conformance",
    ),
    "interop": Entry(
        "kvref_conformance_cli.interop", MAINTAIN,
        "Run client libraries of many languages against kvref, the plugin and memcached.", "conformance",
    ),
}  # fmt: skip
