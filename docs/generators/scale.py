"""What many processes of kvref in front of several databases need, from costs in `bench/results`.

`pairs.json` has those of one database, `shards.json` and `shards-alone.json` those of shards of Vitess, with commands
that share statements and with one connection.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

from generators.speed import RESULTS
from kvref_bench.turns import report
from kvref_bench.turns.shards import DATABASE, GATE, KVREF, SHARDS, TABLET

if TYPE_CHECKING:
    from collections.abc import Mapping

GET, SET = "mysql-get-plugin", "mysql-set"  # rows of the results
TOGETHER: Final = 128  # sets of one process that share a commit, at most
UTILIZATION: Final = 0.7  # of a processor, so that queues stay short
PRIMARY: Final = 16  # processors of one primary
KEY_BYTES: Final = 17
# Of one command between a client and kvref, in addition to key and value: its own words, and two frames of Ethernet, IP
# and TCP with time stamps (14 + 4 + 20 + 32 bytes, and 20 between frames), with an acknowledgement for each.
WORDS_BYTES: Final = 40
PACKETS: Final = 4
PACKET_BYTES: Final = 90
RATES: Final = (100_000, 1_000_000)
SHARD_FILES: Final = ("shards", "shards-alone")
SHARD_COLUMNS: Final = (*SHARDS, report.Column("limit", "limit of mysqld, commands/s", ",.0f", statistics.median))
LAYERS: Final = (KVREF, GATE, TABLET, DATABASE)
WRITES: Final = (0.0, 0.1, 0.5)


@dataclass(frozen=True)
class Cost:
    """Seconds of processor time of one command.

    Args:
        kvref: of kvref.
        database: of the database.
    """

    kvref: float
    database: float


@dataclass(frozen=True)
class Need:
    """What a load needs.

    Args:
        processes: of kvref, each with a processor.
        processors: of the databases together.
        groups: primaries with `PRIMARY` processors.
        commits: per second of all primaries, if each has as many sets as it can.
        gigabits: per second between clients and kvref.
    """

    processes: int
    processors: float
    groups: int
    commits: float
    gigabits: float


def need(rate: int, writes: float, get: Cost, put: Cost, value_bytes: int) -> Need:
    """Return what a load needs, if costs add up.

    Args:
        rate: commands per second.
        writes: share of sets.
        get, put: costs of a get and of a set.
        value_bytes: of a value.
    """
    kvref = rate * ((1 - writes) * get.kvref + writes * put.kvref)
    database = rate * ((1 - writes) * get.database + writes * put.database)
    command = 2 * KEY_BYTES + value_bytes + WORDS_BYTES + PACKETS * PACKET_BYTES
    return Need(
        ceil(kvref / UTILIZATION),
        database / UTILIZATION,
        ceil(database / UTILIZATION / PRIMARY),
        rate * writes / TOGETHER,
        rate * command * 8 / 1e9,
    )


def pages() -> Mapping[str, str]:
    """Return the tables of costs and of needs, which `explanation/scale.md` includes."""
    document = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = {row["name"]: row for row in document["rows"]}
    get, put = (_cost(rows[name]) for name in (GET, SET))
    costs = [
        "| command | kvref | MySQL | one process of kvref |",
        "|---|---|---|---|",
        *(
            f"| {name} | {cost.kvref * 1e6:.1f} µs | {cost.database * 1e6:.1f} µs |"
            f" {UTILIZATION / cost.kvref:,.0f} commands/s |"
            for name, cost in (("get", get), ("set", put))
        ),
    ]
    needs = [
        "| commands/s | sets | processes of kvref | processors of the databases | groups | commits/s, at least |"
        " network of the clients |",
        "|---|---|---|---|---|---|---|",
    ]
    for rate in RATES:
        for share in WRITES:
            one = need(rate, share, get, put, document["settings"]["value_bytes"])
            needs.append(
                f"| {rate:,} | {share:.0%} | {one.processes} | {one.processors:.1f} | {one.groups} |"
                f" {one.commits:,.0f} | {one.gigabits:.1f} Gbit/s |"
            )
    shards = {name: _shard_points(name) for name in SHARD_FILES}
    return {
        **{f"reference/generated/{name}.txt": report.table(points, SHARD_COLUMNS) for name, points in shards.items()},
        "reference/generated/shards-needs.txt": shard_needs(*shards.values()),
        "reference/generated/scale-costs.txt": "\n".join(costs) + "\n",
        "reference/generated/scale-needs.txt": "\n".join(needs) + "\n",
    }


def _shard_points(name: str) -> list[report.Point]:
    """Return the points of a file, each with the rate that the processors of its mysqld allow at most."""
    document = report.read(RESULTS.with_name(f"{name}.json"), "points")
    share = document["settings"]["cpu"]
    return [{**point, "limit": point["shards"] * share / point[DATABASE] * 1e6} for point in document["points"]]


def shard_needs(together: list[report.Point], alone: list[report.Point]) -> str:
    """Return the processors that each layer needs for a rate of commands.

    Args:
        together: points with commands that share statements. alone: points with one connection.
    """
    rate, lines = RATES[-1], []
    for title, points in (("up to 32", together), ("1", alone)):
        shards = min(point["shards"] for point in points)
        for share in sorted({point["share"] for point in points}):
            same = [point for point in points if (point["shards"], point["share"]) == (shards, share)]
            costs = [statistics.median(point[name] for point in same) / 1e6 for name in LAYERS]
            lines.append([title, f"{share:.0%}", *(f"{rate * cost / UTILIZATION:,.0f}" for cost in costs)])
    return report.grid(("commands in a statement", "sets", *LAYERS), lines)


def _cost(row: dict[str, object]) -> Cost:
    """Return the median costs of a row of the results."""
    pairs = row["pairs"]
    assert isinstance(pairs, list)
    servers = [pair["ours"]["server"] for pair in pairs]
    kvref, database = (statistics.median(each[name] for each in servers) / 1e6 for name in ("kvref", "mysqld"))
    return Cost(kvref, database)
