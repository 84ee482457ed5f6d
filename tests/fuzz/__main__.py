"""Fuzz live servers at length: `python -m fuzz --messages 10000000`."""

from __future__ import annotations

import sys
import time

import click

from fuzz.live import Figures
from fuzz.runs import RUNS, Run, held

SAY_EVERY = 10.0  # seconds


@click.command()
@click.option("--messages", type=click.IntRange(1), default=1_000_000, show_default=True, help="Of all runs together.")
@click.option("--seed", default=1, show_default=True, help="Of everything random.")
@click.option(
    "--only", multiple=True, type=click.Choice([run.name for run in RUNS]), help="These runs, all messages each."
)
def main(messages: int, seed: int, only: tuple[str, ...]) -> None:
    """Fuzz servers over SQLite and InnoDB; exit code 1: a rule did not hold."""
    for run in RUNS:
        if only and run.name not in only:
            continue
        count = messages if only else max(1, int(messages * run.share))
        try:
            with run.serving() as served:
                figures = held(run, served, count, seed, _Teller(run))
        except AssertionError as fault:
            click.echo(str(fault), err=True)
            sys.exit(1)
        reported = ", ".join(f"{name} {value:,}" for name, value in figures.as_row().items())
        click.echo(f"{run.name}: {reported}")


class _Teller:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._said = time.monotonic()

    def __call__(self, figures: Figures) -> None:
        now = time.monotonic()
        if now - self._said > SAY_EVERY:
            self._said = now
            click.echo(f"{self._run.name}: {figures.messages:,} messages so far", err=True)


if __name__ == "__main__":
    main()
