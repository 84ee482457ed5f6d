"""The command of the benchmark, which `kvref` finds by the entry point `kvref.commands`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref.cli.registry import MEASURE, Entry

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMANDS: Final[Mapping[str, Entry]] = {
    "bench": Entry(
        "kvref_bench.cli",
        MEASURE,
        "Measure endpoints over memcached and SQL with the experiments of published articles.",
        "bench",
    )
}
