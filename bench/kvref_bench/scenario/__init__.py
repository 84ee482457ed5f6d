"""Scenarios: the experiments of the articles, one commented TOML file each.

    scenario.names()
    scenario.load("ro-1m-int", "laptop", ["measure=2", "sessions=1,8", "work.depth=16"])

Reading path: `files` (the scenarios), `scenario.schema.json` (what may stand in one), `document` (scales, values set by
hand, what it means as `records`).
"""

from kvref_bench.scenario.document import SCALES, load, names
from kvref_bench.scenario.records import Scenario, Series, Table

__all__ = ["SCALES", "Scenario", "Series", "Table", "load", "names"]
