"""`python -m yardsticks record` and `compare`; what they measure is in the package's docstring."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import click

from yardsticks import cases, coverage, instructions, lines, speed, tiers, verdicts
from yardsticks.trace import measure as trace

RECORDS: Final = Path(__file__).with_name("records")
MEASURES: Final[dict[str, ModuleType]] = {
    "lines": lines,
    "cases": cases,
    "trace": trace,
    "verdicts": verdicts,
    "coverage": coverage,
    "tiers": tiers,
    "instructions": instructions,
    "speed": speed,
}
# What a restructuring must not change.
FIXED: Final = ("cases", "verdicts")

_ONLY = click.option("--only", help=f"Comma-separated names among {', '.join(MEASURES)}. [default: all]")
_TARGETS = click.option("--target", "targets", multiple=True, help="Target of `verdicts`. Repeatable. [default: all]")
_FOLDER = click.option(
    "--records", "folder", default=RECORDS, type=click.Path(file_okay=False, path_type=Path), show_default=True
)


@click.group()
def main() -> None:
    """Record and compare what a restructuring must not change, and what it should make smaller."""


@main.command()
@_ONLY
@_TARGETS
@_FOLDER
def record(only: str | None, targets: tuple[str, ...], folder: Path) -> None:
    """Measure and write one JSON file for each name. Records of other targets stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _chosen(only):
        measured = _measure(name, targets)
        if name == "verdicts":
            measured = _read(folder, name) | measured
        text = json.dumps(measured, indent=1, sort_keys=True) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
        click.echo(f"{name}: recorded")


@main.command()
@_ONLY
@_TARGETS
@_FOLDER
def compare(only: str | None, targets: tuple[str, ...], folder: Path) -> None:
    """Measure again and print what differs from the records.

    Exit code 1: a verdict or an exported case differs, or a trace is above its budget.
    """
    broken = False
    for name in _chosen(only):
        measured = _measure(name, targets)
        found = MEASURES[name].differences(_read(folder, name), measured)
        beyond = trace.beyond_budget(measured) if name == "trace" else []
        click.echo(f"{name}: {len(found)} differences")
        for line in (*found, *beyond):
            click.echo(f"  {line}")
        broken = broken or bool(beyond) or bool(found and name in FIXED)
    sys.exit(broken)


def _chosen(only: str | None) -> list[str]:
    """Return the names of measures. Raises click.BadParameter for an unknown one."""
    names = only.split(",") if only else list(MEASURES)
    for name in names:
        if name not in MEASURES:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(MEASURES)}", param_hint="--only")
    return names


def _measure(name: str, targets: tuple[str, ...]) -> dict[str, Any]:
    measure = MEASURES[name].measure
    return dict(measure(targets) if name == "verdicts" and targets else measure())


def _read(folder: Path, name: str) -> dict[str, Any]:
    file = folder / f"{name}.json"
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


if __name__ == "__main__":
    main()
