"""Requirements by servers, from the reports of `kvref conform`: what holds where, and the conversation behind it.

A report is `report.jsonl` as the suite writes it, or the same in gzip; its name (or its folder's) is the server's.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from kvref.specification.report import ReportError
from kvref.specification.report import read as read_report
from kvref_bench.errors import BenchError
from support import style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

# The suite's words, the one that counts most first: a requirement is what the worst of its cases is.
VERDICTS: Final = (
    *("crash", "hang", "fails", "flaky", "suite-error", "deviates", "non-strict", "not-run"),
    *("holds", "disabled", "unsupported"),
)
# Texts that are read of each verdict.
READ: Final = ("chapter", "case", "verdict", "reason")
# A quirk holds.
READ_AS: Final = {"quirk": "holds"}
COLOURS: Final = {
    "crash": "#5c0011",
    "hang": "#7f0018",
    "fails": "#b0122b",
    "flaky": "#d9485f",
    "suite-error": "#6a0dad",
    "deviates": "#e69f00",
    "non-strict": "#f0c96b",
    "not-run": "#c9ced4",
    "holds": "#0072b2",
    "disabled": "#e3e6ea",
    "unsupported": "#f3f4f6",
}
MEANING: Final = {
    "holds": "holds",
    "non-strict": "fails a requirement that is not mandatory",
    "deviates": "deviates, as documented",
    "fails": "fails",
    "flaky": "breaks at times",
    "hang": "hangs",
    "crash": "crashes",
    "suite-error": "suite error",
    "not-run": "not run",
    "disabled": "switched off",
    "unsupported": "does not apply",
}
UNDER: Final = "Each line is a requirement, with the worst verdict of its cases; below, how many there are"
# Requirements by what they are about, from their prefixes, in the order of the chart.
AREAS: Final = {
    "memcached text": "ARITH CAS CONN CORE CRAWL EXP FLUSH LIMIT MGET PARSE POLICY SEQ STATS TOUCH",
    "mapping": "BIND CONF CONT DEF DELIM LIFE MAP RANGE SEP",
    "columns": "COL FLAG KEY NULL ORDER TABLE TYPE",
    "transactions": "BATCH BETWEEN BINLOG HIST IDLE ISO LOCK RBATCH SET SQL",
    "binary": "BINARITH BINCMD BINFRAME BINGET BINLEN BINMAP BINQUIET BINRANGE BINSTAT BINSTORE",
    "meta": "MA MD META MG MS",
}


@dataclass(frozen=True)
class Report:
    """What the suite said of one server.

    header: of the report. cases: one row for each case and requirement, columns `requirement`, `chapter`, `case`,
    `verdict`, `reason`. lines: the report's verdicts with their conversations. sha256: of the report's text.
    """

    server: str
    header: dict[str, Any]
    cases: pd.DataFrame
    lines: list[dict[str, Any]]
    sha256: str


def read(path: Path) -> Report:
    """Read a report.

    path: `SERVER.jsonl.gz`, or `SERVER/report.jsonl`.

    Raises BenchError: as `report.read`.
    """
    try:
        found = read_report(path)
    except ReportError as error:
        raise BenchError(str(error)) from error
    lines = found.verdicts
    for line in lines:
        line["verdict"] = READ_AS.get(line["verdict"], line["verdict"])
    rows = [
        {"requirement": each, **{name: line[name] for name in READ}} for line in lines for each in line["requirements"]
    ]
    server = path.parent.name if path.name == "report.jsonl" else path.name.split(".jsonl")[0]
    return Report(server, found.header, pd.DataFrame(rows), lines, found.sha256)


def read_all(folder: Path) -> dict[str, Report]:
    """Read the reports in a folder, by server; none where there is no such folder."""
    paths = [*folder.glob("*.jsonl.gz"), *folder.glob("*/report.jsonl")]
    return {report.server: report for report in sorted(map(read, paths), key=lambda each: each.server)}


def by_requirement(reports: Mapping[str, Report]) -> pd.DataFrame:
    """Return the verdict of each requirement (rows) for each server (columns).

    A requirement is what the worst of its cases is; one that no case of a report names is `not-run`.
    The rows stand by area and number, with a level `area` before `requirement`.
    """
    columns = {}
    if not reports:
        return pd.DataFrame(index=pd.MultiIndex.from_arrays([[], []], names=["area", "requirement"]))
    for server, report in reports.items():
        rank = report.cases["verdict"].map(VERDICTS.index).groupby(report.cases["requirement"]).min()
        columns[server] = rank.map(VERDICTS.__getitem__)
    matrix = pd.DataFrame(columns).astype(object).fillna("not-run")
    areas = pd.Index([area(str(each)) for each in matrix.index], name="area")
    matrix = matrix.rename_axis("requirement").set_index(areas, append=True).swaplevel()
    order = list(AREAS)
    return matrix.sort_index(key=lambda level: level.map(order.index) if level.name == "area" else level)


def area(requirement: str) -> str:
    """Return the area of a requirement by its ID. Raises BenchError if its prefix is not in AREAS."""
    prefix = requirement.split("-")[1]
    for name, prefixes in AREAS.items():
        if prefix in prefixes.split():
            return name
    raise BenchError(f"{requirement}: its prefix is in no area; add it to AREAS of {__name__}")


def counted(matrix: pd.DataFrame) -> pd.DataFrame:
    """Count the requirements of each server (rows) by verdict (columns); verdicts that nowhere occur are left out."""
    counts = {str(server): matrix[server].value_counts() for server in matrix.columns}
    table = pd.DataFrame(counts).reindex(list(VERDICTS)).fillna(0).astype(int).T
    return table.loc[:, table.sum() > 0]


def differing(matrix: pd.DataFrame, pair: Sequence[str]) -> pd.DataFrame:
    """Return the requirements that apply to both of two servers and on which their verdicts differ."""
    if len(pair) < 2:
        return matrix.iloc[:0]
    one, other = pair
    applies = ~matrix[[one, other]].isin(["unsupported", "disabled", "not-run"]).any(axis=1)
    return matrix.loc[applies & (matrix[one] != matrix[other]), [one, other]]


def conversation(report: Report, requirement: str) -> pd.DataFrame:
    """Return what was said in the worst case of a requirement, where the report keeps it, an exchange in each row."""
    lines = [line for line in report.lines if requirement in line["requirements"]]
    worst = min(lines, key=lambda line: VERDICTS.index(line["verdict"]))
    return pd.DataFrame(worst.get("conversation", []))


def draw(axes: Axes, matrix: pd.DataFrame, names: Mapping[str, str] | None = None) -> None:
    """Draw each server as a strip, each requirement as a line in it, coloured by its verdict.

    names: label of each strip, by server.
    """
    codes = matrix.apply(lambda column: column.map(VERDICTS.index)).to_numpy(dtype=np.int64).T
    colours = ListedColormap([COLOURS[each] for each in VERDICTS])
    axes.pcolormesh(codes[::-1], cmap=colours, vmin=-0.5, vmax=len(VERDICTS) - 0.5, rasterized=True)
    for edge in range(len(codes) + 1):
        axes.axhline(edge, color="white", linewidth=9)
    servers = [str(each) for each in matrix.columns][::-1]
    axes.set_yticks([place + 0.5 for place in range(len(servers))], [(names or {}).get(each, each) for each in servers])
    _label_areas(axes, [str(each) for each in matrix.index.get_level_values("area")])
    _explain(axes, codes)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _label_areas(axes: Axes, areas: Sequence[str]) -> None:
    starts = [place for place, name in enumerate(areas) if place == 0 or areas[place - 1] != name]
    ends = [*starts[1:], len(areas)]
    for start in starts[1:]:
        axes.axvline(start, color="white", linewidth=4)
    texts = [f"{areas[start]}\n{end - start}" for start, end in zip(starts, ends, strict=True)]
    axes.set_xticks([(start + end) / 2 for start, end in zip(starts, ends, strict=True)], texts)


def _explain(axes: Axes, codes: NDArray[np.int64]) -> None:
    shown = [VERDICTS[code] for code in sorted(set(codes.ravel().tolist()), reverse=True)]
    patches = [
        Patch(facecolor=COLOURS[each], edgecolor=style.MUTED, linewidth=0.5, label=MEANING[each]) for each in shown
    ]
    axes.legend(handles=patches, loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=len(shown), handlelength=1.2)


def page(reports: Mapping[str, Report]) -> style.Slide:
    """Draw the requirements of all reports, with what they say."""
    if not reports:
        return style.nothing("No server was judged", "The folder of runs has no conformance report.", "Source: none.")
    matrix = by_requirement(reports)
    source = "Source: kvref conform, " + ", ".join(
        f"{server} {str(report.header['started'])[:10]}" for server, report in reports.items()
    )
    made, (axes,) = style.slide(_title(matrix), f"{source}.", subtitle=UNDER, left=0.16, right=0.98)
    made.subplots_adjust(top=made.subplotpars.top - 0.055)  # room for the legend
    draw(axes, matrix)
    return made


def _title(matrix: pd.DataFrame) -> str:
    counts = counted(matrix).reindex(columns=list(VERDICTS), fill_value=0)
    broken = (counts["deviates"] + counts["fails"]).to_dict()
    worst = max(broken, key=lambda server: broken[server])
    if not broken[worst]:
        return f"None of {len(broken)} servers breaks a requirement that applies to it"
    applies = len(matrix) - int((matrix[worst] == "unsupported").sum())
    none = sum(not each for each in broken.values())
    kept = f"{worst} keeps {applies - broken[worst]:,} of the {applies:,} requirements that apply to it"
    return f"{kept}; {none} of {len(broken)} servers break none"


def furthest(matrix: pd.DataFrame) -> tuple[str, ...]:
    """Choose the two servers whose verdicts differ most often; both where there are no more."""
    pairs = list(itertools.combinations(map(str, matrix.columns), 2))
    return max(pairs, key=lambda pair: len(differing(matrix, pair)), default=())


def conversation_of(reports: Mapping[str, Report], differing: pd.DataFrame) -> pd.DataFrame:
    """Return what was said behind the first differing requirement on the server that does not keep it."""
    for requirement in map(str, differing.index.get_level_values("requirement")):
        for server in map(str, differing.columns):
            worst = differing.xs(requirement, level="requirement")[server].iloc[0]
            if worst in {"deviates", "fails"}:
                return conversation(reports[server], requirement).assign(server=server, requirement=requirement)
    return pd.DataFrame()


def sentence(reports: Mapping[str, Report]) -> str:
    """Say which servers break requirements, and how many."""
    if not reports:
        return "No server has a conformance report here."
    counts = counted(by_requirement(reports)).reindex(columns=list(VERDICTS), fill_value=0)
    said = [
        f"{server} keeps {row['holds']:,} of {row[['holds', 'deviates', 'fails']].sum():,} judged requirements"
        for server, row in counts.iterrows()
    ]
    return "; ".join(said) + "."
