"""The articles' ratios and ours as tables, charts and a sentence."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

import pandas as pd
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from support import gather, seeds, style
from support.answer import Answer, cannot_tell, command, figures
from support.articles import Claim, claims

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes

    from support.gather import Data
    from support.seeds import Row

SESSIONS: Final = re.compile(r"\d+ (connections|threads)")
VERDICTS: Final = ("yes", "no", "cannot tell")
COLOURS: Final = {"yes": "#8fc3e6", "no": "#f2a37c", "cannot tell": "#eceef1"}  # dark words are read on each
ARROWS: Final = {  # where an article has only words
    "more": ("more \N{BLACK RIGHT-POINTING POINTER}", "left", 8),
    "less": ("\N{BLACK LEFT-POINTING POINTER} less", "right", -8),
}
TICKS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)


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


def chart(rows: Sequence[Row], datas: Mapping[str, Data], heading: str) -> style.Slide:
    """Draw each claim as a line of the page: the article's ratio, and ours with its interval for each server.

    rows: of one table of an article. heading: what is over what.
    """
    asked = list(dict.fromkeys(row.claim for row in rows))
    shown = [row for row in rows if row.ours is not None and math.isfinite(row.ours.value)]
    source = _source(asked, datas)
    if not shown and not any(math.isfinite(claim.published) for claim in asked):
        return style.nothing(f"{heading}: cannot tell", rows[0].why if rows else "", source)
    made, (axes,) = style.slide(
        f"{heading}: {_verdict(rows)}", source, left=0.27, right=0.8,
        subtitle="ratio; diamond, or words: the article's; points: ours, with 95 % interval unless hollow",
    )  # fmt: skip
    servers = sorted({row.server for row in shown})
    looks = _looks(servers, datas)
    for place, claim in enumerate(reversed(asked)):
        _claim(axes, place, claim, [row for row in shown if row.claim == claim], servers, looks)
    axes.axvline(1, color=style.MUTED, linewidth=1.6)
    axes.set_yticks(range(len(asked)), [_short(claim, asked) for claim in reversed(asked)], fontsize=14)
    axes.set_ylim(-0.6, len(asked) - 0.4)
    axes.grid(visible=False, axis="y")
    _ratio_axis(axes, [claim.published for claim in asked], shown)
    ends = [style.End(1.0, 0.0, server, looks[server].colour) for server in servers]
    _key(made, axes, [*ends, style.End(1.0, 0.0, "the article", style.INK)], looks)
    return made


def _claim(
    axes: Axes, place: int, claim: Claim, rows: list[Row], servers: list[str], looks: dict[str, style.Look]
) -> None:
    if math.isfinite(claim.published):
        axes.plot([claim.published], [place], "D", color="white", markeredgecolor=style.INK, markeredgewidth=2.2,
                  markersize=12, zorder=4)  # fmt: skip
    elif claim.relation in ARROWS:
        text, side, shift = ARROWS[claim.relation]
        axes.annotate(
            text, (1, place - 0.26), (shift, 0), textcoords="offset points", ha=side, va="center", fontsize=14
        )
    for row in rows:
        assert row.ours is not None
        step = 0.7 / max(len(servers), 1)
        y = place + 0.35 - step * (servers.index(row.server) + 0.5)
        look = looks[row.server]
        if row.ours.known:
            axes.plot([row.ours.low, row.ours.high], [y, y], color=look.colour, linewidth=2.6, alpha=0.65)
        face = look.colour if row.ours.known else "white"
        axes.plot([row.ours.value], [y], look.marker, color=look.colour, markerfacecolor=face, markersize=9, zorder=5)


def _ratio_axis(axes: Axes, published: Iterable[float], rows: Iterable[Row]) -> None:
    values = [each for each in published if math.isfinite(each) and each > 0]
    for row in rows:
        assert row.ours is not None
        values += [each for each in (row.ours.value, row.ours.low, row.ours.high) if math.isfinite(each) and each > 0]
    low, high = min([*values, 0.8]), max([*values, 1.25])
    axes.set_xscale("log")
    axes.set_xlim(low / 1.15, high * 1.15)
    axes.xaxis.set_major_locator(FixedLocator([tick for tick in TICKS if low / 1.15 <= tick <= high * 1.15]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("ratio (1: no difference)")


def _key(page: style.Slide, axes: Axes, ends: Sequence[style.End], looks: Mapping[str, style.Look]) -> None:
    """Label the markers next to the axes, which become narrower if the labels need more room."""
    top, texts = 1.0, []
    for end in ends:
        lines = _wrapped(end.text, 18)
        y = top - 0.025 * len(lines)
        top -= 0.05 * len(lines) + 0.035
        look = looks.get(end.text)
        axes.plot([1.04], [y], look.marker if look else "D", transform=axes.transAxes, color=end.colour, markersize=11,
                  markerfacecolor=end.colour if look else "white", clip_on=False)  # fmt: skip
        texts.append(axes.text(1.065, y, "\n".join(lines), transform=axes.transAxes, color=style.ink(end.colour),
                               va="center", fontweight="bold"))  # fmt: skip
    widest = max(page.width(text) for text in texts)
    page.subplots_adjust(right=min(page.subplotpars.right, 0.985 - widest - 0.065 * axes.get_position().width))


def _looks(servers: Iterable[str], datas: Mapping[str, Data]) -> dict[str, style.Look]:
    known: dict[str, style.Look] = {}
    for data in datas.values():
        kinds = data.points[["label", "kind"]].drop_duplicates()
        known |= style.looks(list(zip(kinds["label"], kinds["kind"], strict=True))) | data.looks
    other = style.Look(style.PALETTE["other"][0], "D")
    return {server: known.get(server, known.get(server.split(" over ")[0], other)) for server in servers}


def _short(claim: Claim, asked: Sequence[Claim]) -> str:
    """Name a line of the page: the sessions where only they differ, else the group, or what is over what in it."""
    alike = [each for each in asked if each.group == claim.group]
    tail = claim.what.split(", ")[-1]
    if len({each.group for each in asked}) == 1 and SESSIONS.fullmatch(tail):
        return tail
    text = claim.what if len(alike) > 1 else claim.group.rsplit(", ", 1)[0]
    return "\n".join(_wrapped(text, 30))


def _wrapped(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _verdict(rows: Sequence[Row]) -> str:
    counts = Counter(row.direction for row in rows if row.counted)
    told = counts["yes"] + counts["no"]
    if not told:
        return "whether directions agree cannot be determined"
    unknown = f"; {counts['cannot tell']} cannot be determined" if counts["cannot tell"] else ""
    compared = f"{counts['yes']} of {told} comparison{'s' if told > 1 else ''}"
    # kvref's own ratios are in the chart, but they are no evidence about what the articles measured.
    apart = " (without kvref)" if any(row.server.startswith("kvref") for row in rows) else ""
    return f"the direction agrees in {compared}{apart}{unknown}"


def _source(asked: Sequence[Claim], datas: Mapping[str, Data]) -> str:
    printed = "; ".join(dict.fromkeys(f"{claim.title} ({claim.source})" for claim in asked))
    ours = " ".join(data.source.removeprefix("Source: ") for data in datas.values())
    return f"Source: {printed}. " + (f"Ours: {ours}" if ours else "No own run.")


def overview(rows: Sequence[Row], datas: Mapping[str, Mapping[str, Data]]) -> style.Slide:
    """Draw which directions agree on which server, one line for each table or sentence of the articles."""
    groups = list(dict.fromkeys(row.claim.group for row in rows))
    servers = sorted({_server(row) for row in rows if row.server})
    runs = {run.id for places in datas.values() for data in places.values() for run in data.runs}
    made, (axes,) = style.slide(
        f"Published and measured ratios: {_verdict(rows)}",
        f"Source: five articles, 2008 to 2013, by title in this notebook; {len(runs)} own runs.",
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
    told = [f"{counts[verdict]} {verdict}" for verdict in ("yes", "no") if counts[verdict]]
    many = counts.total() > 1
    text = ", ".join(told if many else [each.split()[1] for each in told]) or "?"
    axes.text(x, y, text, ha="center", va="center", fontsize=12.5, fontweight="bold", color=style.INK)


def answer(rows: Sequence[Row]) -> Answer:
    """Say how many of the articles' directions agree."""
    by_claim: dict[Claim, set[str]] = {row.claim: set() for row in rows}
    for row in rows:
        if row.counted and row.direction != "cannot tell":
            by_claim[row.claim].add(row.direction)
    told = {claim: verdicts for claim, verdicts in by_claim.items() if verdicts}
    if not told:
        return cannot_tell("no published ratio has both its sides in these runs", command=command("get-vs-select"))
    agree = sum(verdicts == {"yes"} for verdicts in told.values())
    sentence = (
        f"Of {len(by_claim)} published ratios {len(told)} can be judged: {agree} point the same way as ours on every "
        f"server, {_named(told, {'no'})} the other way, {_named(told, {'yes', 'no'})} differ by server."
    )
    return Answer(sentence, (
        f"{len(by_claim) - len(told)} of the ratios: the tables give the reasons.",
        "Whether the articles' rates were right: only directions are compared, on another machine with other versions.",
        "Ratios of kvref, and of native memcached instead of the plugin, are shown for comparison and prove no claim.",
    ))  # fmt: skip


def _named(told: Mapping[Claim, set[str]], verdicts: set[str]) -> str:
    """Count the claims with these verdicts, and name where they stand."""
    found = [claim for claim, given in told.items() if given == verdicts]
    groups = "; ".join(dict.fromkeys(claim.group for claim in found))
    return f"{len(found)} ({groups})" if found else "0"
