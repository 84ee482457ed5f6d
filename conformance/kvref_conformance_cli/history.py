"""`kvref matrix --history DIR`: keep reports, judge the endpoints of a file, and write what changed over time."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

import click
from rich.table import Table

from kvref import documents
from kvref.cli.output import print_results
from kvref.documents import DocumentError
from kvref.errors import KvrefError, SuiteError
from kvref_conformance.data.typed import mismatch
from kvref_conformance.reports.history import archive, forms, page
from kvref_conformance.reports.history.cache import NAME as CACHE
from kvref_conformance.reports.history.cache import Cache
from kvref_conformance.reports.history.changes import FIXED, LOST, REGRESSION, changes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvref_conformance.reports.history.changes import Change
    from kvref_conformance.reports.history.run import Run

ENDPOINTS: Final = "endpoints.toml"
PAGE: Final = "index.html"
JSON: Final = "history.json"
BADGES: Final = "badges"
# Of a run that ended with a report, whether the endpoint conforms or not.
JUDGED: Final = frozenset({0, 1})


class _Endpoint(TypedDict):
    """A table of endpoints.toml."""

    conform: tuple[str, ...]


def update(folder: Path, reports: Sequence[str], *, judge: bool) -> int:
    """Keep reports and write page, JSON and badges.

    Args:
        folder: of the history; made if it does not exist.
        reports: `[NAME=]REPORT` to keep.
        judge: judge the endpoints of `endpoints.toml` first and keep their reports too.

    Returns:
        The exit code: 0, or 2 where an endpoint could not be judged.

    Raises:
        KvrefError: a report cannot be read or kept, or the files cannot be written.
    """
    try:
        _keep(folder, reports)
        unjudged = _judge_all(folder) if judge else 0
        cache = Cache(folder)
        runs = archive.read(folder, cache)
        found = {name: changes(each) for name, each in runs.items()}
        _replace(folder / PAGE, page.html(runs, found))
        _replace(folder / JSON, forms.as_json(runs, found, folder))
        forms.badges(runs, folder / BADGES)
        _replace(folder / CACHE, cache.text())
    except SuiteError as error:
        raise KvrefError(str(error)) from error
    except OSError as error:
        raise KvrefError(f"cannot write {error.filename or folder}: {error.strerror or error}") from error
    print_results(_table(runs, found))
    click.echo(f"{folder / PAGE}: {len(runs)} endpoints, {sum(map(len, runs.values()))} runs")
    return 2 if unjudged else 0


def _keep(folder: Path, reports: Sequence[str]) -> None:
    for path, new in archive.keep(folder, reports):
        click.echo(f"{path}: {'kept' if new else 'is kept already'}")


def _judge_all(folder: Path) -> int:
    """Judge each endpoint; one that cannot be judged does not keep the others from it. Return how many could not."""
    unjudged = 0
    for name, arguments in _endpoints(folder / ENDPOINTS).items():
        click.echo(f"{name}: kvref conform {' '.join(arguments)}", err=True)
        with tempfile.TemporaryDirectory() as report:
            command = [sys.executable, "-m", "kvref", "conform", *arguments, "--report", report]
            code = subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode
            if code in JUDGED:
                _keep(folder, [f"{name}={report}"])
            else:
                unjudged += 1
                click.echo(f"{name}: could not be judged, exit code {code}: run the command above", err=True)
    return unjudged


def _endpoints(file: Path) -> Mapping[str, tuple[str, ...]]:
    fix = '[NAME] and conform = ["--target", "memcached"], the arguments of `kvref conform`'
    try:
        tables = documents.read_toml(file)
    except OSError as error:
        raise SuiteError(f"{file}: {error.strerror or error}: write it with {fix}") from error
    except DocumentError as error:
        raise SuiteError(f"{file}: {error}") from error
    for name, table in tables.items():
        fault = mismatch(table, _Endpoint, name)
        if fault or table.keys() != {"conform"} or not archive.is_name(name):
            raise SuiteError(f"{file}: {fault or f'{name}: unknown key, or no name'}: an endpoint has {fix}")
    return {name: tuple(table["conform"]) for name, table in tables.items()}


def _replace(file: Path, text: str) -> None:
    """Write a file as a whole: who reads it meanwhile, or after an interruption, has the old one."""
    new = file.with_name(f".{file.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(file)


def _table(runs: Mapping[str, Sequence[Run]], found: Mapping[str, Sequence[Change]]) -> Table:
    table = Table(title="last run of each endpoint", title_justify="left")
    for heading in ("endpoint", "runs", "last run", "kept", REGRESSION, LOST, FIXED):
        table.add_column(heading, justify="left" if heading in {"endpoint", "last run"} else "right")
    for name, each in runs.items():
        passed = each[-1].shares.get(archive.ALL)
        counts = [str(forms.counted(found[name], kind) or "·") for kind in (REGRESSION, LOST, FIXED)]
        table.add_row(name, str(len(each)), each[-1].about(), passed.percent if passed else "", *counts)
    return table
