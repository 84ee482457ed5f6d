"""Which runs there are, on which machine and servers, what of them counts and what does not, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from kvref_bench.runs import document, folder, tables
from support import style
from support.answer import Answer, cannot_tell, command, figures, listed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from kvref_bench.runs.run import Run

NOT_JUDGED: Final = "not judged"


def stored(where: Path) -> list[Run]:
    """Read every run below a folder, by scenario and time. Raises BenchError: one is damaged."""
    read = (folder.read(path.parent) for path in where.rglob(document.NAME))
    return sorted(read, key=lambda run: (name_of(run), run.id))


def name_of(run: Run) -> str:
    """Return the name of a run's scenario."""
    return str(run.info["scenario"]["name"])


def table(runs: Sequence[Run]) -> pd.DataFrame:
    """List runs: scenario, scale, day, servers, points and how many count, operations, how each run ended."""
    return pd.DataFrame([_row(run) for run in runs])


def _row(run: Run) -> dict[str, Any]:
    commit = run.info["tool"]["git_commit"]
    return {
        "scenario": name_of(run),
        "run": run.id,
        "scale": run.info["scenario"]["scale"],
        "servers": run.points["server"].nunique(),
        "points": len(run.points),
        "valid": int(run.points["valid"].sum()),
        "operations": figures(float(run.points["ops"].sum())),
        "ended": run.info["stopped"] or ("whole" if run.finished else "killed"),
        "commit": (commit or "unknown")[:8] + ("+" if run.info["tool"]["dirty"] else ""),
    }


def machines(runs: Sequence[Run]) -> pd.DataFrame:
    """Describe each machine (column) that runs were made on; what differs between its runs is a range or a list."""
    by_machine: dict[str, list[Run]] = {}
    for run in runs:
        by_machine.setdefault(str(run.info["machine"]["hostname_hash"]), []).append(run)
    return pd.DataFrame({name: _machine(group) for name, group in sorted(by_machine.items())})


def _machine(runs: Sequence[Run]) -> dict[str, str]:
    facts = [run.info["machine"] for run in runs]
    loads = [float(each) for fact in facts for each in (fact["loadavg_before"][0], fact.get("loadavg_after", [0.0])[0])]
    costs = [float(run.info["clock"].get("perf_counter_cost_ns", np.nan)) for run in runs]
    return {
        "runs": str(len(runs)),
        "CPU": _words(fact["cpu_model"] for fact in facts),
        "cores": _words(fact["cores"] for fact in facts),
        "memory, GiB": _words(f"{fact.get('memory', 0) / 2**30:.0f}" for fact in facts),
        "kernel": _words(fact["kernel"] for fact in facts),
        "virtual": _words(fact.get("virt") or "unknown" for fact in facts),
        "load at start and end": f"{min(loads):.2f} to {max(loads):.2f}",
        "Python": _words(run.info["runtime"]["python"] for run in runs),
        "uvloop": _words(run.info["runtime"].get("uvloop") or "none" for run in runs),
        "reading the clock, ns": f"{min(costs):.0f} to {max(costs):.0f}",
    }


def _words(values: Any) -> str:
    return ", ".join(sorted({str(each) for each in values}))


def verdicts(runs: Sequence[Run]) -> pd.DataFrame:
    """List every server with what its conformance report said; `not judged` where its runs recorded none."""
    rows: dict[str, dict[str, Any]] = {}
    for run in runs:
        for server in run.info["servers"]:
            row = rows.setdefault(server["name"], {
                "kind": server["kind"], "version": server["version"], "runs": 0, "judged in": 0, "verdict": NOT_JUDGED,
            })  # fmt: skip
            row["runs"] += 1
            if server["verdict"] is not None:
                row["judged in"] += 1
                row["verdict"] = _verdict(server["verdict"])
    return pd.DataFrame.from_dict(rows, orient="index").sort_index()


def _verdict(verdict: dict[str, Any]) -> str:
    totals = ", ".join(f"{count:,} {word}" for word, count in verdict["totals"].items() if count)
    return f"{'conforms' if verdict['conforms'] else 'does not conform'} to {verdict['profile']}: {totals}"


def points(runs: Sequence[Run]) -> pd.DataFrame:
    """Join the points of runs; `gate`: what the first reason against a point is, empty for a valid one."""
    if not runs:
        return pd.DataFrame(columns=[*tables.POINTS.names, "gate"])
    joined = pd.concat([run.points for run in runs], ignore_index=True)
    return joined.assign(gate=joined["invalid_reason"].str.split("[:;]", regex=True).str[0].fillna(""))


def excluded(every: pd.DataFrame) -> pd.DataFrame:
    """List what does not count: scenario, server, gate, how many points, and one reason in full."""
    out = every[~every["valid"]]
    grouped = out.groupby(["scenario", "server", "gate"], sort=True)
    return grouped.agg(points=("point_id", "size"), example=("invalid_reason", "first")).reset_index()


def counting(every: pd.DataFrame) -> pd.DataFrame:
    """Return for each scenario (rows) and server (columns) the share of points that count; NaN: not measured."""
    return every.pivot_table(index="scenario", columns="server", values="valid", aggfunc="mean", observed=True)


def draw(axes: Axes, every: pd.DataFrame) -> None:
    """Draw scenarios by servers, each cell with how many of its points count."""
    shares = counting(every)
    groups = every.groupby(["scenario", "server"])["valid"]
    sums, sizes = groups.sum(), groups.size()
    axes.imshow(shares.to_numpy(dtype=float), cmap="RdYlGn", vmin=0.0, vmax=1.0, alpha=0.55, aspect="auto")
    for row, scenario in enumerate(shares.index):
        for column, server in enumerate(shares.columns):
            place = (scenario, server)
            text = f"{sums[place]} of {sizes[place]}" if place in sums.index else "-"
            axes.text(column, row, text, ha="center", va="center", fontsize=15)
    axes.set_xticks(range(len(shares.columns)), [str(each) for each in shares.columns])
    axes.set_yticks(range(len(shares.index)), [str(each) for each in shares.index])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def notes(runs: Sequence[Run]) -> pd.DataFrame:
    """List what runs say of themselves: what they left out, and what limits them as a whole."""
    rows = [
        (name_of(run), kind, str(text))
        for run in runs
        for kind, texts in (("left out or noted", run.info["notes"]), ("warning", run.info["warnings"]))
        for text in texts
    ]
    return pd.DataFrame(rows, columns=["scenario", "kind", "text"]).drop_duplicates(ignore_index=True)


def foot(runs: Sequence[Run]) -> str:
    """Write the line at the foot of a chart that all runs are in."""
    days = sorted(str(run.info["began"])[:10] for run in runs)
    machine = ", ".join(
        sorted({f"{run.info['machine']['cpu_model']}, {run.info['machine']['cores']} cores" for run in runs})
    )
    return f"Source: {len(runs)} runs, {days[0]} to {days[-1]} ({machine})." if runs else "Source: none."


def page(runs: Sequence[Run], every: pd.DataFrame) -> style.Slide:
    """Draw how many points count, with what it says."""
    if not runs:
        return style.nothing("There are no runs", "The folder has no run.", foot(runs))
    valid, judged = int(every["valid"].sum()), verdicts(runs)
    told = int((judged["verdict"] != NOT_JUDGED).sum())
    title = f"{valid:,} of {len(every):,} measured points pass every gate; {told} of {len(judged)} servers were judged"
    made, (axes,) = style.slide(
        title, foot(runs), left=0.2, right=0.97, subtitle="Points that count, of all that were measured"
    )
    draw(axes, every)
    return made


def conclude(runs: Sequence[Run], every: pd.DataFrame) -> Answer:
    """Answer what there is and how much of it counts."""
    if not runs:
        return cannot_tell("the folder has no run", command=command("ro-1m-int"))
    judged = verdicts(runs)
    unjudged = sorted(str(each) for each in judged.index[judged["verdict"] == NOT_JUDGED])
    gates = every.loc[~every["valid"].astype(bool), "gate"].value_counts()
    why = f"; what marks most of the others is the gate “{gates.index[0]}” ({gates.iloc[0]})" if len(gates) else ""
    said = "every server has a conformance verdict"
    if unjudged:
        said = (
            f"{len(judged) - len(unjudged)} of {len(judged)} servers have a conformance verdict, not {listed(unjudged)}"
        )
    limits = tuple(
        f"{each} of {name_of(run)}: {len(run.points[~run.points['valid']])} of {len(run.points)} points are marked."
        for run in runs
        for each in [run.id]
        if not run.points["valid"].any()
    )
    return Answer(
        f"{len(runs)} runs of {every['scenario'].nunique()} scenarios on {every['server'].nunique()} servers: "
        f"{int(every['valid'].sum()):,} of {len(every):,} points count{why}; {said}.",
        limits,
    )
