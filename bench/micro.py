# /// script
# requires-python = ">=3.11"
# dependencies = ["kvref[bench]"]
# ///
"""What one command costs inside kvref over SQLite, stage by stage, without a socket: CPU microseconds and shares.

    python bench/micro.py                                        # all cases
    python bench/micro.py --cases "get hit, text" --rounds 9 --json micro.json
    python bench/micro.py --profile --cases "set, text"          # functions by their own time

A stage is what a part of the server does through its public door: `wire.protocol.parser` (parse), `executor.run` of
`semantics.verbs.execute` (dispatch, without the storage under it), `Transactions.execute` (storage), `executor.commit`
(commit), `wire.protocol.encode` (reply). `whole` is `Connection.data_received` with a transport that only counts; what
it takes beyond the stages, its own work and the loop's turn, is `rest`. A rest far below zero says that the connection
goes past stages; a dispatch below zero, that the executor goes past the storage.

Time is CPU time of this process. Rounds go through all cases and stages, every second one backwards.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
import uvloop
from rich.console import Console
from rich.table import Table

from kvref import profiles
from kvref.errors import KvrefError
from kvref.storage.sqlite.store import SQLiteStore
from kvref.storage.stores import open_store
from kvref_bench.peers.sqlite_tables import SQLiteTables
from kvref_bench.runs import machine
from kvref_testbed.targets import QUIET
from micro_cases import MANY, Case, cases, table
from micro_profile import profiled
from micro_stages import STAGES, TICK, Bench

if TYPE_CHECKING:
    from collections.abc import Sequence


async def measure(bench: Bench, chosen: Sequence[Case], rounds: int) -> list[dict[str, Any]]:
    """Measure each case in each round; one round before them is not counted."""
    taken: dict[str, list[dict[str, float]]] = {case.name: [] for case in chosen}
    for number in range(-1, rounds):
        for case in chosen if number % 2 else chosen[::-1]:
            each = {**await bench.stages(case), "whole": await bench.whole(case)}
            each["rest"] = each["whole"] - sum(each[stage] for stage in STAGES)
            if number >= 0:
                taken[case.name].append(each)
    return [{"case": name, "stages": _summed(several)} for name, several in taken.items()]


def _summed(several: Sequence[dict[str, float]]) -> dict[str, dict[str, float]]:
    found = {}
    for stage in several[0]:
        numbers = [each[stage] for each in several]
        shares = [each[stage] / each["whole"] for each in several]
        found[stage] = {
            "us": statistics.median(numbers),
            "min": min(numbers),
            "max": max(numbers),
            "share": statistics.median(shares),
        }
    return found


def stages_table(results: Sequence[dict[str, Any]]) -> Table:
    """Return the table: microseconds, range and share of each stage."""
    table = Table("case", *STAGES, "rest", "whole", title="CPU microseconds of an exchange, range, share of the whole")
    for each in results:
        cells = (each["stages"][stage] for stage in (*STAGES, "rest", "whole"))
        table.add_row(
            each["case"],
            *(f"{cell['us']:.1f}\n{cell['min']:.1f} to {cell['max']:.1f}\n{cell['share']:.0%}" for cell in cells),
        )
    return table


def profile_table(result: dict[str, Any]) -> Table:
    """Return the functions of a profile, by their own time."""
    rooms = ", ".join(f"{room} {share:.0%}" for room, share in result["rooms"].items())
    shown = Table("share", "calls", "function", title=f"{result['case']}: {result['calls']:.0f} calls; {rooms}")
    for each in result["functions"]:
        shown.add_row(f"{each['share']:.1%}", f"{each['calls']:.1f}", f"{each['file']}: {each['function']}")
    return shown


@click.command()
@click.option("--cases", "names", multiple=True, help="NAME; may be repeated. [default: all]")
@click.option("--count", default=3200, show_default=True, type=click.IntRange(1), help="Exchanges in a measurement.")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1), help="Measurements of each stage.")
@click.option("--keys", default=10_000, show_default=True, type=click.IntRange(MANY), help="Rows of the table.")
@click.option("--profile", "seconds", is_flag=False, flag_value=4.0, type=float, help="Profile; CPU seconds a case.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures there too.")
def main(
    names: tuple[str, ...], count: int, rounds: int, keys: int, seconds: float | None, file: Path | None
) -> None:  # fmt: skip
    """Measure what a command costs inside the server."""
    known = {case.name: case for case in cases(keys)}
    unknown = set(names) - known.keys()
    if unknown:
        raise KvrefError(f"no case {', '.join(sorted(unknown))}: choose among {'; '.join(known)}")
    chosen = [known[name] for name in names or known]
    facts = profiles.load("kvref")
    with tempfile.TemporaryDirectory() as folder:
        dsn = f"sqlite:///{Path(folder) / 'micro.sqlite'}"
        with closing(cast(SQLiteStore, open_store(dsn, facts, 50.0))) as store:
            store.initialise()
            rows, tables = table(keys), SQLiteTables(dsn)
            tables.create(rows)
            tables.map(rows)
            tables.fill(rows, QUIET)
            results = uvloop.run(_all(store, chosen, count, rounds, seconds))
    document = {
        "machine": machine.public(machine.machine()),
        "tool": machine.public(machine.tool(sys.argv)),
        "settings": {"count": count, "rounds": rounds, "keys": keys, "tick": TICK},
        "results": results,
    }
    if file is not None:
        file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


async def _all(
    store: SQLiteStore, chosen: Sequence[Case], count: int, rounds: int, seconds: float | None
) -> list[dict[str, Any]]:
    bench, console = Bench(store, count), Console(width=160)
    if seconds is None:
        results = await measure(bench, chosen, rounds)
        console.print(stages_table(results))
        return results
    results = []
    for case in chosen:
        await bench.turn_again(case)  # caches are as full as they get
        results.append({"case": case.name, **await profiled(partial(bench.turn_again, case), count, seconds)})
        console.print(profile_table(results[-1]))
    return results


if __name__ == "__main__":
    try:
        main()
    except KvrefError as error:
        sys.exit(f"micro: {error}")
