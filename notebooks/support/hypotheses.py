"""The claims of the articles as hypotheses, with one verdict for each server.

A hypothesis is a list of ratios that must lie between two bounds. It holds if all their intervals do, and fails if one
lies outside. It cannot be decided if an interval crosses a bound, or if there is none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pandas as pd
from matplotlib.colors import ListedColormap

from support import batching, matrix, style
from support.answer import Answer, figures
from support.articles import Claim
from support.gather import gather
from support.latency import joined
from support.sides import compared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from support.gather import Data
    from support.matrix import Report
    from support.sides import Compared

HOLDS: Final = "holds"
FAILS: Final = "fails"
CANNOT_TELL: Final = "cannot tell"
NOT_MEASURED: Final = "not measured"
NEXT_LINE: Final = "\n"
VERDICTS: Final = (HOLDS, FAILS, CANNOT_TELL, NOT_MEASURED)
COLOURS: Final = ("#9fd3b6", "#f0a8a0", "#e8e9eb", "#ffffff")

LIMITS: Final = (
    "A claim was made of other machines and versions; that it fails here does not say that it was false there.",
    "Requirements were judged once, by the profile of the server.",
)

RECORD: Final = "MySQL 5.7.3: Deep dive into 1mil QPS with InnoDB Memcached (2013)"
PLANET: Final = "MySQL Performance: over 1M QPS with InnoDB Memcached Plugin in MySQL 5.7 (2013)"
PLANNING: Final = "MySql Performance Measurements for Capacity Planning (2008)"
NATIVE: Final = "InnoDB memcached plug-in vs native memcached performance test (2013)"
NEW: Final = "New Enhancements for InnoDB Memcached (2012)"


class Finding(NamedTuple):
    """One figure of one server: its interval, to be compared with the bounds (NaN if none), and why there is none."""

    server: str
    value: float
    low: float
    high: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A claim of an article that runs can test.

    name: `H1` and so on. claim: for a chart, short. source: title and year. find: the figures of a scenario's runs.
    least, most: bounds of each figure. unit: of the figures; `x`: ratios.
    """

    name: str
    claim: str
    source: str
    scenario: str
    find: Callable[[Data], list[Finding]]
    least: float = 0.0
    most: float = math.inf
    unit: str = "x"


class Verdict(NamedTuple):
    """The verdict on a hypothesis for one server.

    shown: its figures, from the least to the greatest; why: reason of the verdict.
    """

    hypothesis: str
    server: str
    verdict: str
    shown: str
    why: str


def _ratios(
    way: str, *sides: tuple[str, str, str], series: str = "", over: str = "", where: str = "local"
) -> Callable[[Data], list[Finding]]:
    """Find ratios of rates as `sides.compared` does. sides: (upper, lower, at), one for each ratio."""
    blank: dict[str, Any] = dict.fromkeys((each.name for each in fields(Claim)), "") | {
        "published": math.nan,
        "measure": "qps",
    }
    same = blank | {"compare": way, "series": series, "over": over, "where": where}
    claims = [
        Claim(**same | {"upper": upper, "lower": lower, "at": at, "what": f"{upper} over {lower}"})
        for upper, lower, at in sides
    ]

    def find(data: Data) -> list[Finding]:
        return [_finding(each) for claim in claims for each in compared(claim, {where: data})]

    return find


def _finding(found: Compared) -> Finding:
    server = found.server.removesuffix(", SQL")  # the line of a server, as its other figures
    if found.ratio is None:
        return Finding(server, math.nan, math.nan, math.nan, found.why)
    low = 0.0 if found.bound == "at most" else found.ratio.low
    high = math.inf if found.bound == "at least" else found.ratio.high
    few = "" if found.ratio.known else f"{found.ratio.count} repetitions, 5 are needed"
    return Finding(server, found.ratio.value, low, high, found.why or few)


def _binlog(data: Data) -> list[Finding]:
    points = data.points[data.points["use"] == "valid"]
    if batching.BINLOG not in points:
        return []
    table = batching.cost(points, ["label", batching.W_BATCH, "sessions"])
    return [Finding(str(row.label), float(row.ratio), float(row.low), float(row.high)) for row in table.itertuples()]  # type: ignore[arg-type]


def _lags(data: Data) -> list[Finding]:
    curves = batching.lags(joined(data.runs), data.points, ["label", batching.INTERVAL])
    found = []
    for (label, interval, what), each in curves.items():
        if what == "visible":
            waited = each["ns"].to_numpy(dtype=float) / batching.SECOND - float(str(interval))
            found += [Finding(str(label), end, end, end) for end in (float(waited[0]), float(waited[-1]))]
    return found


_THREADS: Final = tuple(("memcached", "*", str(each)) for each in (4, 8, 16, 32, 64, 128, 256))
_CONNECTIONS: Final = tuple(("memcached", "sql", str(each)) for each in (8, 32, 128, 512))
_NONE: Final = 1.1  # a ratio below this, or above its inverse, counts as no difference

HYPOTHESES: Final = (
    Hypothesis("H1", "The isolation level does not matter to reads", RECORD, "ro-1m-int",
               _ratios("factor", ("innodb_api_trx_level=2", "innodb_api_trx_level=0", "best"), over="memcached"),
               1 / _NONE, _NONE),
    Hypothesis("H2", "Batches of reads give at most 10 %", PLANET, "ro-1m-int",
               _ratios("factor", ("daemon_memcached_r_batch_size=max", "daemon_memcached_r_batch_size=1", "best"),
                       over="memcached"),
               most=_NONE),
    Hypothesis("H3", "128 sessions read as fast as 32", RECORD, "ro-1m-int",
               _ratios("sessions", ("128", "32", ""), over="memcached"), least=1 / _NONE),
    Hypothesis("H4", "get is more than twice as fast as SELECT", RECORD, "ro-1m-int",
               _ratios("over", ("memcached", "sql", "best")), least=2),
    Hypothesis("H5", "Perl's fast client gets 3 times what its slow one gets", RECORD, "client-overhead",
               _ratios("series", ("perl-fast", "perl", "1")), least=3),
    Hypothesis("H6", "Two clients read twice as much as one", PLANNING, "random-user-capacity",
               _ratios("sessions", ("2", "1", ""), over="sql", series="select"), 1.8, 2.2),
    Hypothesis("H7", "Native memcached writes at least 20 times faster", NATIVE, "memslap-set",
               _ratios("kind", *_THREADS), least=20),
    Hypothesis("H8", "Reads: half to all of native memcached's rate", NATIVE, "memslap-get",
               _ratios("kind", ("*", "memcached", "4")), 0.5, 1),
    Hypothesis("H9", "More threads do not write more", NATIVE, "memslap-set",
               _ratios("sessions", ("256", "4", ""), over="memcached"), most=1),
    Hypothesis("H10", "set is at least 4.5 times as fast as a procedure", NEW, "set-vs-sproc",
               _ratios("over", *_CONNECTIONS), least=4.5),
    Hypothesis("H11", "get is at least 1.5 times as fast as SELECT", NEW, "get-vs-select",
               _ratios("over", *_CONNECTIONS), least=1.5),
    Hypothesis("H12", "The binary log makes writes slower", NEW, "binlog-batch", _binlog, most=1),
    Hypothesis("H13", "Larger batches make writes faster", NEW, "binlog-batch",
               _ratios("factor", ("daemon_memcached_w_batch_size=max", "daemon_memcached_w_batch_size=1", "best")),
               least=1),
    Hypothesis("H14", "SQL sees a batch an interval to a second later", NEW, "bk-commit-lag", _lags, 0, 1, "s"),
)  # fmt: skip


def judge(hypothesis: Hypothesis, findings: Sequence[Finding]) -> list[Verdict]:
    """Return the verdict on a hypothesis for each server that has figures."""
    servers: dict[str, list[Finding]] = {}
    for each in findings:
        if each.server:
            servers.setdefault(each.server, []).append(each)
    return [_judged(hypothesis, server, found) for server, found in servers.items()]


def _judged(hypothesis: Hypothesis, server: str, found: Sequence[Finding]) -> Verdict:
    known = [each for each in found if not math.isnan(each.low)]
    measured = sorted(each.value for each in found if not math.isnan(each.value))
    ends = dict.fromkeys([measured[0], measured[-1]]) if measured else ()
    shown = " to ".join(f"{each:.2f}" if hypothesis.unit == "s" else figures(each, 2) for each in ends)
    if shown:
        shown = f"x {shown}" if hypothesis.unit == "x" else f"{shown} {hypothesis.unit}"
    outside = [each for each in known if each.high < hypothesis.least or each.low > hypothesis.most]
    inside = [each for each in known if each.low >= hypothesis.least and each.high <= hypothesis.most]
    if outside:
        return Verdict(hypothesis.name, server, FAILS, shown, f"{len(outside)} of {len(found)} outside of the bounds")
    if len(inside) == len(found):
        return Verdict(hypothesis.name, server, HOLDS, shown, f"all {len(found)} within the bounds")
    whys = [each.why or "the interval crosses a bound" for each in found if each not in inside]
    return Verdict(hypothesis.name, server, CANNOT_TELL, shown, whys[0])


def test(hypotheses: Iterable[Hypothesis], where: Path) -> list[Verdict]:
    """Test hypotheses with the runs below a folder; one without a run has no verdict."""
    verdicts = []
    for each in hypotheses:
        data = gather(each.scenario, where)
        verdicts += judge(each, each.find(data)) if data is not None else []
    return verdicts


def table(verdicts: Iterable[Verdict], column: str = "verdict") -> pd.DataFrame:
    """Return hypotheses (rows) by servers (columns); `column`: `verdict`, `shown` or `why`."""
    order = [each.name for each in HYPOTHESES]
    frame = pd.DataFrame(list(verdicts), columns=Verdict._fields)
    wide = frame.pivot_table(index="hypothesis", columns="server", values=column, aggfunc="first")
    return wide.reindex(order).astype(object).fillna(NOT_MEASURED if column == "verdict" else "")


def draw(axes: Axes, verdicts: Sequence[Verdict]) -> None:
    """Draw hypotheses by servers: colour and word are the verdict, below it the figures."""
    words, figures_ = table(verdicts), table(verdicts, "shown")
    codes = words.apply(lambda column: column.map(VERDICTS.index)).to_numpy(dtype=float)
    axes.pcolormesh(codes[::-1], cmap=ListedColormap(COLOURS), vmin=-0.5, vmax=3.5, edgecolor="white", linewidth=3)
    rows, many = len(words), len(words.columns) > 3
    centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 10 if many else 11.5, "linespacing": 1.0}
    for row in range(rows):
        for column in range(len(words.columns)):
            word, shown = str(words.iat[row, column]), str(figures_.iat[row, column])
            if word != NOT_MEASURED:
                text = f"{word}{NEXT_LINE if many else '   '}{shown}" if shown else word
                axes.text(column + 0.5, rows - row - 0.5, text, **centred)
    names = {each.name: each for each in HYPOTHESES}
    claims = [f"{name}  {names[str(name)].claim}" for name in words.index]
    axes.set_yticks([rows - row - 0.5 for row in range(rows)], claims, fontsize=12)
    heads = [str(each).replace(" ", "\n", 1) if many else str(each) for each in words.columns]
    axes.set_xticks([place + 0.5 for place in range(len(heads))], heads, fontsize=13)
    axes.xaxis.tick_top()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.grid(visible=False)


def page(verdicts: Sequence[Verdict], source: str) -> style.Slide:
    """Draw the hypotheses with what they say."""
    title = "The articles' claims, tested"
    if not verdicts:
        return style.nothing(title, "There is no run of a scenario that tests one.", source)
    told = [each for each in verdicts if each.verdict in {HOLDS, FAILS}]
    holds = sum(each.verdict == HOLDS for each in told)
    open_ = len(verdicts) - len(told)
    title = f"{holds} of {len(told)} decided tests of the articles' claims hold; {open_} cannot be decided"
    made, (axes,) = style.slide(title, source, left=0.42, right=0.98)
    made.subplots_adjust(bottom=0.07)  # there is no axis below
    draw(axes, verdicts)
    return made


def listed() -> pd.DataFrame:
    """List the hypotheses: what is claimed, by whom, which scenario tests it and within which bounds."""
    rows = {
        each.name: {
            "claim": each.claim, "source": each.source, "scenario": each.scenario,
            "least": figures(each.least, 2), "most": figures(each.most, 2), "unit": each.unit,
        }
        for each in HYPOTHESES
    }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index")


def reasons(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """List every verdict with its figures and what it rests on."""
    return pd.DataFrame(list(verdicts), columns=Verdict._fields)


def conclude(reports: Mapping[str, Report], verdicts: Sequence[Verdict]) -> Answer:
    """Return which requirements servers meet, and which of the articles' claims hold."""
    kept = matrix.sentence(reports)
    if not verdicts:
        none = "No claim of the articles could be tested: there are no runs."
        return Answer(f"{kept} {none}", LIMITS, known=bool(reports))
    counts = {word: sum(each.verdict == word for each in verdicts) for word in VERDICTS}
    tested = {each.hypothesis for each in verdicts if each.verdict in {HOLDS, FAILS}}
    broken = sorted({each.hypothesis for each in verdicts if each.verdict == FAILS}, key=lambda name: int(name[1:]))
    said = f"{counts[HOLDS]} verdicts hold, {counts[FAILS]} fail, {counts[CANNOT_TELL]} cannot tell"
    tail = f"; on at least one server {', '.join(broken)} fail" if broken else "; none fails"
    claims = (
        f"Of {len(HYPOTHESES)} claims of the articles {len(tested)} could be decided on some server ({said}){tail}."
    )
    return Answer(f"{kept} {claims}", LIMITS)
