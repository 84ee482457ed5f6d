"""The articles' ratios and ours as tables, a chart and a sentence."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

import pandas as pd

from support import gather, seeds, style
from support.answer import Answer, cannot_tell, command, figures, setting
from support.articles import Claim, claims

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes

    from support.gather import Data
    from support.seeds import Row

VERDICTS: Final = ("yes", "no", "cannot tell")
COLOURS: Final = {"yes": "#8fc3e6", "no": "#f2a37c", "cannot tell": "#eceef1"}  # dark words are read on each


def everything() -> tuple[list[Row], dict[str, dict[str, Data]]]:
    """Compare every claim with the runs; return the rows, and the data by scenario and place."""
    names = list(dict.fromkeys(claim.scenario for claim in claims()))
    datas = {name: gather.places(name) for name in names}
    return [row for name in names for row in seeds.compare(claims(name), datas[name])], datas


def table(rows: Iterable[Row]) -> pd.DataFrame:
    """Return a line for each claim and server: what the article prints, its ratio, ours, and whether they agree."""
    return pd.DataFrame(
        [
            {
                "the article's row": row.claim.what,
                "printed": row.claim.as_printed,
                "its ratio": figures(row.claim.published) if math.isfinite(row.claim.published) else row.claim.relation,
                "our server": row.server or "-",
                "our ratio": _ours(row),
                "direction agrees": row.direction,
                "because": row.why,
            }
            for row in rows
        ]
    )


def _ours(row: Row) -> str:
    if row.ours is None or not math.isfinite(row.ours.value):
        return "-"
    more = {"exact": "", "at least": "at least ", "at most": "at most "}[row.bound]
    between = f" ({figures(row.ours.low)} to {figures(row.ours.high)})" if row.ours.known else " (no interval)"
    return f"{more}{figures(row.ours.value)}{between}"


def of(rows: Iterable[Row], *groups: str) -> list[Row]:
    """Return the rows of groups of claims, by how their names begin."""
    found = [row for row in rows if row.claim.group.startswith(groups)]
    if not found:
        raise ValueError(f"no claim of a group {groups}: the groups are in published/claims.csv")
    return found


def _wrapped(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _verdict(rows: Sequence[Row]) -> str:
    counts = Counter(row.direction for row in rows if row.counted)
    judged = counts["yes"] + counts["no"]
    if not judged:
        return "whether directions agree cannot be determined"
    unknown = f"; {counts['cannot tell']} cannot be determined" if counts["cannot tell"] else ""
    compared = f"{counts['yes']} of {judged} comparison{'s' if judged > 1 else ''}"
    # kvref's own ratios are in the chart, but they are not evidence about what the articles measured.
    apart = " (without kvref)" if any(row.server.startswith("kvref") for row in rows) else ""
    return f"the direction agrees in {compared}{apart}{unknown}"


def overview(rows: Sequence[Row], datas: Mapping[str, Mapping[str, Data]]) -> style.Slide:
    """Draw which directions agree on which server, one line for each table or sentence of the articles."""
    groups = list(dict.fromkeys(row.claim.group for row in rows))
    servers = sorted({_server(row) for row in rows if row.server})
    runs = {run.id: run.info for places in datas.values() for data in places.values() for run in data.runs}
    made, (axes,) = style.slide(
        f"Published and measured ratios: {_verdict(rows)}",
        f"Source: five articles, 2008 to 2013, by title in this notebook; {len(runs)} own runs"
        + (f", {setting(list(runs.values()))}." if runs else "."),
        left=0.36, right=0.97,
    )  # fmt: skip
    for y, group in enumerate(reversed(groups)):
        here = [row for row in rows if row.claim.group == group]
        if not any(row.server for row in here):
            axes.text(-0.46, y, f"cannot tell: {here[0].why}", va="center", fontsize=12.5, color=style.MUTED)
        for x, server in enumerate(servers or ["no server"]):
            counts = Counter(row.direction for row in here if _server(row) == server)
            _cell(axes, x, y, counts)
    axes.set_yticks(range(len(groups)), list(reversed(groups)), fontsize=12.5)
    names = ["\n".join(_wrapped(each.replace("-", "- ", 1), 12)) for each in servers or ["no server"]]
    axes.set_xticks(range(len(names)), names, fontsize=13)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xlim(-0.5, max(len(servers), 1) - 0.5)
    axes.set_ylim(-0.5, len(groups) - 0.5)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    made.subplots_adjust(bottom=0.08, top=made.subplotpars.top - 0.06)
    return made


def _server(row: Row) -> str:
    return row.server.removesuffix(", SQL").split(" over ")[0]


def _cell(axes: Axes, x: int, y: int, counts: Counter[seeds.Verdict]) -> None:
    if not counts:
        return
    left = x - 0.46
    for verdict in VERDICTS:
        width = 0.92 * counts[verdict] / counts.total()
        axes.barh(y, width, left=left, height=0.82, color=COLOURS[verdict])
        left += width
    judged = [f"{counts[verdict]} {verdict}" for verdict in ("yes", "no") if counts[verdict]]
    many = counts.total() > 1
    text = ", ".join(judged if many else [each.split()[1] for each in judged]) or "?"
    axes.text(x, y, text, ha="center", va="center", fontsize=12.5, fontweight="bold", color=style.INK)


def answer(rows: Sequence[Row]) -> Answer:
    """Say how many of the articles' directions agree."""
    by_claim: dict[Claim, set[str]] = {row.claim: set() for row in rows}
    for row in rows:
        if row.counted and row.direction != "cannot tell":
            by_claim[row.claim].add(row.direction)
    judged = {claim: verdicts for claim, verdicts in by_claim.items() if verdicts}
    if not judged:
        return cannot_tell("no published ratio has both its sides in these runs", command=command("get-vs-select"))
    agree = sum(verdicts == {"yes"} for verdicts in judged.values())
    sentence = (
        f"Of {len(by_claim)} published ratios {len(judged)} can be judged: {agree} point the same way as ours on every "
        f"server, {_named(judged, {'no'})} the other way, {_named(judged, {'yes', 'no'})} differ by server."
    )
    return Answer(sentence, (
        f"{len(by_claim) - len(judged)} of the ratios: the tables give the reasons.",
        "Whether the articles' rates were right: only directions are compared, on another machine with other versions.",
        "Ratios of kvref, and of native memcached instead of the plugin, are shown for comparison and prove no claim.",
    ))  # fmt: skip


def _named(judged: Mapping[Claim, set[str]], verdicts: set[str]) -> str:
    """Count the claims with these verdicts, and name where they stand."""
    found = [claim for claim, given in judged.items() if given == verdicts]
    groups = "; ".join(dict.fromkeys(claim.group for claim in found))
    return f"{len(found)} ({groups})" if found else "0"
