"""What the runs of a scenario say together: one table of points, each with what its server and series are.

data = gather.gather("ro-1m-int")     # from the folder KVREF_RUNS names; None where no run is of that scenario
data.points[data.points["use"] == "valid"]
"""

from __future__ import annotations

import functools
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pandas as pd

from kvref_bench.load.histogram import quantile
from kvref_bench.runs import document, folder, tables
from support import answer, style

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kvref_bench.runs.folder import Run

Shown = TypeVar("Shown")

VARIABLE: Final = "KVREF_RUNS"
COMMITTED: Final = "data/laptop"
SATURATED_ALONE: Final = re.compile("client saturated: [^;]*")
TITLES: Final = {"plugin": "plugin", "memcached": "memcached", "mysql": "MySQL", "mariadb": "MariaDB"}


def root() -> Path:
    """Return the folder of runs: what KVREF_RUNS names, or the runs that come with the notebooks."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    here = Path(COMMITTED)
    return here if here.is_dir() else Path("notebooks") / COMMITTED


@dataclass(frozen=True, eq=False)
class Data:
    """The runs of one scenario on one machine, each server's from its newest run.

    points: columns of `runs.tables.POINTS`, and: `kind` of the server; `label` of it, for readers; `over`: `memcached`
    or `sql`; `default`: its series has no settings of the server; `mix`: its commands, one panel of a chart; `line`:
    name of one line of a chart; `line_kind`: the line's color; `cpu_share`: share of the machine's cores that the
    server used; `use`: `valid`, `limited` (invalid only because the client was at its limit: the server reaches
    at least this rate) or `invalid`; `visible`: ns until SQL saw a write.
    left_out: sentences about runs that are not included.
    """

    scenario: str
    runs: list[Run]
    points: pd.DataFrame
    left_out: tuple[str, ...] = ()

    @property
    def spec(self) -> dict[str, Any]:
        """The scenario as resolved for the newest run."""
        spec: dict[str, Any] = self.runs[-1].info["scenario"]["spec"]
        return spec

    @property
    def title(self) -> str:
        """What is measured, and over how many rows where that is not as published."""
        title = str(self.spec["title"])
        if self.spec["scale"] == "full" or self.growing:
            return title
        return f"{title}, here {self.spec['table']['keys']['count']:,} rows"

    @property
    def cores(self) -> int:
        """How many the machine has."""
        return int(self.runs[-1].info["machine"]["cores"])

    @property
    def source(self) -> str:
        """The line at the foot of a chart."""
        return answer.source([run.info for run in self.runs])

    @property
    def growing(self) -> str:
        """Say what grows with the sessions, if anything does."""
        works = [series["work"] for series in self.spec["series"]]
        if any(work.get("operations") and work["keys"]["distribution"] == "own" for work in works):
            return "each session writes its own new keys, so the table grows with the sessions"
        return ""

    @property
    def closed(self) -> pd.DataFrame:
        """The points of the closed loop."""
        return self.points[self.points["rate"].isna()]

    @property
    def line_styles(self) -> dict[str, style.LineStyle]:
        """How each line is drawn; one of a series with settings is the default one's, dotted."""
        lines = self.points[["line", "line_kind", "default"]].drop_duplicates()
        default = lines[lines["default"]] if lines["default"].any() else lines
        found = style.line_styles(list(zip(default["line"], default["line_kind"], strict=True)))
        for line, kind in zip(lines["line"], lines["line_kind"], strict=True):
            base = found.get(line.partition(" (")[0]) or style.line_styles([(line, kind)])[line]
            found.setdefault(line, style.LineStyle(base.colour, style.MARKERS[3], style.DASHES[2]))
        return found


def gather(scenario: str, runs: Path | None = None, place: str = "local") -> Data | None:
    """Read the runs of a scenario, once; None where there is none.

    runs: folder below which they are; without it what `root` gives. place: of the clients, `local` or `remote`.
    Raises BenchError for a damaged run.
    """
    return _gather(scenario, (runs or root()).resolve(), place)


def show(scenario: str, draw: Callable[[Data], Shown]) -> Shown | style.Slide:
    """Return what is drawn or tabled of a scenario's runs, or a page that names the command which makes one."""
    data = gather(scenario)
    if data is not None:
        return draw(data)
    return style.nothing(
        f"{scenario}: no run here", f"{answer.command(scenario)} makes one", f"Source: none in {root()}."
    )


@functools.cache
def _gather(scenario: str, runs: Path, place: str) -> Data | None:
    read = [folder.read(path) for path in folder.find(runs, scenario)]
    found = [run for run in read if _place(run) == place]
    if not found:
        return None
    newest = found[-1]
    fitting = [run for run in found if _alike(run) == _alike(newest)]
    left_out = [f"run {run.id}: of another machine, scale or version" for run in found if run not in fitting]
    frames: dict[str, pd.DataFrame] = {}
    owners: dict[str, str] = {}
    for run in fitting:
        for server, part in run.points.groupby("server"):
            frames[str(server)], owners[str(server)] = _described(run, part), run.id
    shown = [run for run in fitting if run.id in owners.values()]
    left_out += [f"run {run.id}: newer ones have its servers" for run in fitting if run not in shown]
    points = pd.concat([frames[name] for name in sorted(frames)], ignore_index=True)
    return Data(scenario, shown, points, tuple(left_out))


def stored() -> list[Run]:
    """Read every run below the folder of runs, by scenario and time. Raises BenchError: one is damaged."""
    read = (folder.read(path.parent) for path in root().rglob(document.NAME))
    return sorted(read, key=lambda run: (str(run.info["scenario"]["name"]), run.id))


def points(runs: Sequence[Run]) -> pd.DataFrame:
    """Join the points of runs."""
    if not runs:
        return pd.DataFrame(columns=tables.POINTS.names)
    return pd.concat([run.points for run in runs], ignore_index=True)


def foot(runs: Sequence[Run]) -> str:
    """Write the line at the foot of a chart that all runs are in."""
    return f"Source: {len(runs)} runs, {answer.setting([run.info for run in runs])}." if runs else "Source: none."


def places(scenario: str, runs: Path | None = None) -> dict[str, Data]:
    """Read the runs of a scenario by place of the clients: `local`, and `remote` through a link."""
    found = {place: gather(scenario, runs, place) for place in ("local", "remote")}
    return {place: data for place, data in found.items() if data is not None}


def _place(run: Run) -> str:
    return "remote" if run.info["network"].get("kind") in {"namespace", "dask", "remote"} else "local"


def _alike(run: Run) -> tuple[object, ...]:
    machine, scenario = run.info["machine"], run.info["scenario"]
    return machine["cpu_model"], machine["cores"], machine["hostname_hash"], scenario["scale"], scenario["version"]


def _described(run: Run, points: pd.DataFrame) -> pd.DataFrame:
    servers = {each["name"]: each for each in run.info["servers"]}
    spec = run.info["scenario"]["spec"]
    series = {each["name"]: each for each in spec["series"]}
    names = _names(spec)
    kind = points["server"].map(lambda name: servers[name]["kind"])
    labels = points["server"].map(lambda name: label(servers[name]))
    used = points["server_cpu_user"] + points["server_cpu_sys"]
    judged = zip(points["valid"], points["invalid_reason"], strict=True)
    over = points["series"].map(lambda name: series[name]["over"])
    sql = over == "sql"
    return points.assign(
        kind=kind,
        label=labels,
        over=over,
        default=points["series"].isin(_default_series(spec)),
        mix=points["series"].map(lambda name: mix(series[name]["work"])),
        line=labels.where(~sql | kind.isin(["mysql", "mariadb"]), labels + ", SQL") + points["series"].map(names),
        line_kind=kind.where(~sql | (kind == "mariadb"), "mysql"),
        use=[_use(*each) for each in judged],
        cpu_share=used / points["seconds"] / float(run.info["machine"]["cores"]),
        visible=_visible(run, points),
    )


def _visible(run: Run, points: pd.DataFrame) -> list[float]:
    """Return the median of what passed until SQL saw a write, ns; NaN for a scenario that does not measure it."""
    if run.info["scenario"]["spec"].get("kind") != "lag":
        return [math.nan] * len(points)
    seen = (run.bins(int(each), verb="set", outcome="visible") for each in points["point_id"])
    return [float(quantile(bins, 0.5)) if bins else math.nan for bins in seen]


def mix(work: dict[str, Any]) -> str:
    """Return the commands of a series as text: `get`; `get 90 %, set 10 %`; `get, 16 in one write`."""
    total = sum(work["verbs"].values())
    shares = [(verb, 100 * weight / total) for verb, weight in sorted(work["verbs"].items(), key=lambda each: -each[1])]
    commands = shares[0][0] if len(shares) == 1 else ", ".join(f"{verb} {share:.3g} %" for verb, share in shares)
    depth, keys = work.get("depth", 1), work.get("multiget", 1)
    return commands + (f", {depth} in one write" if depth > 1 else "") + (f", {keys} keys each" if keys > 1 else "")


def _default_series(spec: dict[str, Any]) -> set[str]:
    """Return the series without settings of the server."""
    own = {each["name"]: each.get("settings") for each in spec["series"]}
    return {name for name, settings in own.items() if not (spec.get("settings") if settings is None else settings)}


def _names(spec: dict[str, Any]) -> dict[str, str]:
    """Return a suffix that distinguishes series with the same commands and side; empty for the one without settings."""
    alike: dict[tuple[str, str], list[str]] = {}
    for each in spec["series"]:
        alike.setdefault((each["over"], mix(each["work"])), []).append(each["name"])
    suffixes: dict[str, str] = {}
    for names in alike.values():
        alone = [name for name in names if name in _default_series(spec)] if len(names) > 1 else names
        suffixes |= {name: "" if alone == [name] else f" ({name})" for name in names}
    return suffixes


def label(server: dict[str, Any]) -> str:
    """Name a server of run.json for readers: `plugin 8.0.33`; one whose version says little by its own name."""
    title = TITLES.get(server["kind"])
    version = str(server["version"]).split("-")[0]
    return f"{title} {version}" if title and version else str(server["name"])


def _use(valid: bool, reason: str) -> str:
    if valid:
        return "valid"
    return "limited" if SATURATED_ALONE.fullmatch(reason) else "invalid"
