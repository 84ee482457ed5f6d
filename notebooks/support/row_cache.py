"""What the row cache over a database server saves, and how old its replies are, by the share of SQL writes.

The data are those of `kvref bench row-cache --json row_cache.json` in the folder of runs.
"""

from __future__ import annotations

import json
from typing import Final

import pandas as pd

from support import gather, style
from support.answer import Answer, cannot_tell, figures

FILE: Final = "row_cache.json"
MAKES: Final = "kvref bench row-cache --json notebooks/data/laptop/row_cache.json"
MODES: Final = ("off", "strong", "local", "fast")  # "local" is strong with the files of the log
LIMIT_MS: Final = 10  # `row_cache_staleness` of the mode `fast` in that script
LIMITS: Final = (
    "CPU time is compared, not the rate: others used the machine, and the generator ran on the same processors.",
    "All rows fit into the cache, and each is read equally often.",
    "The server sends its log to both processes that have a cache, also while the other one is measured.",
)


def load() -> pd.DataFrame:
    """Return the measurements of all points; empty if the folder has none."""
    path = gather.root() / FILE
    if not path.is_file():
        return pd.DataFrame(columns=["mode", "share"])
    found = json.loads(path.read_text())
    return pd.DataFrame(found["points"]).assign(server=found["server"])


def table(points: pd.DataFrame) -> pd.DataFrame:
    """List for each mode and share of writes the medians of CPU time and hits, and the stale gets of all turns."""
    if points.empty:
        return points
    grouped = points.assign(cpu=points["kvref"] + points["database"]).groupby(["mode", "share"], sort=False)
    medians = grouped[["kvref", "database", "cpu", "hits"]].median().round(3)
    return medians.assign(
        gets=grouped["gets"].sum(),
        stale=grouped["stale"].sum(),
        stale_p99=grouped["stale_p99"].max().round(2),
        stale_max=grouped["stale_max"].max().round(2),
    )


def page(points: pd.DataFrame) -> style.Slide:
    """Draw CPU time and hits by the share of writes."""
    if points.empty:
        return style.nothing("The row cache over a database server", f"The folder has no {FILE}.", "Source: none.")
    listed, source = table(points), f"Source: {FILE}, {points['server'].iloc[0]}."
    saved = _span(_saved(listed, "strong"))
    made, panels = style.slide(
        f"In strong mode, a get takes {saved} of the CPU time without a cache",
        source, subtitle="64 connections; CPU time of kvref and the database together", columns=2,
    )  # fmt: skip
    modes = [mode for mode in MODES if mode in set(points["mode"])]
    looks = style.looks([(mode, "kvref") for mode in modes])
    for axes, (column, label, factor) in zip(
        panels, (("cpu", "µs of CPU per get", 1), ("hits", "% hits", 100)), strict=True
    ):
        for mode in modes:
            part = _of(listed, mode)
            style.line(axes, [100 * each for each in part.index], (part[column] * factor).tolist(), look=looks[mode])
        axes.set(xlabel="SQL writes, % of all operations", ylabel=label)
        axes.set_ylim(bottom=0)
    style.label_ends(
        panels[-1],
        [style.End(*_end(_of(listed, mode)), mode, looks[mode].colour) for mode in modes],
    )
    return made


def _end(part: pd.DataFrame) -> tuple[float, float]:
    return float(part.index[-1]) * 100, float(part["hits"].iloc[-1]) * 100


def _of(listed: pd.DataFrame, mode: str) -> pd.DataFrame:
    return pd.DataFrame(listed.loc[mode])


def _saved(listed: pd.DataFrame, mode: str) -> list[float]:
    ratios = _of(listed, mode)["cpu"] / _of(listed, "off")["cpu"]
    return [float(each) for each in ratios]


def conclude(points: pd.DataFrame) -> Answer:
    """Say what strong and fast mode save, and whether their replies are as old as they may be."""
    if points.empty:
        return cannot_tell("the folder has no measurement", command=MAKES)
    listed = table(points)
    strong, fast = _of(listed, "strong"), _of(listed, "fast")
    saved = {mode: _span(_saved(listed, mode)) for mode in ("strong", "fast")}
    local = ""
    if "local" in set(points["mode"]):
        local = (
            f" with the files of the log on the same machine, {_stale(_of(listed, 'local'))}, and a get takes"
            f" {_span(_saved(listed, 'local'))};"
        )
    return Answer(
        f"In strong mode {_stale(strong)}, and a get takes {saved['strong']} of the CPU time without a cache, by the"
        f" share of writes;{local} in fast mode it takes {saved['fast']}, and {_stale(fast)}, by at most"
        f" {figures(float(fast['stale_max'].max()), 2)} ms where the limit is {LIMIT_MS} ms.",
        LIMITS,
    )


def _stale(part: pd.DataFrame) -> str:
    return f"{int(part['stale'].sum()):,} of {int(part['gets'].sum()):,} gets are stale"


def _span(ratios: list[float]) -> str:
    return f"{figures(min(ratios), 2)} to {figures(max(ratios), 2)}"
