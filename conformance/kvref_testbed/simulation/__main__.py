"""Run worlds by their seeds.

python -m kvref_testbed.simulation --worlds 1000 --seed 0    # prints seeds that fail, and how fast it was
python -m kvref_testbed.simulation --seed 42 --events        # one world, with its events
python -m kvref_testbed.simulation --plan FILE               # a plan that a failing seed was shrunk to
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path

import click

from kvref_testbed.mutants import MUTANTS
from kvref_testbed.mutants.mutant import planted
from kvref_testbed.simulation.defects import DEFECTS
from kvref_testbed.simulation.plan import Plan, draw, from_json
from kvref_testbed.simulation.runs import failing_of
from kvref_testbed.simulation.shrink import shrink
from kvref_testbed.simulation.world import Outcome, Simulation, simulation

SHOWN = 5  # failing seeds with their findings


def _report(outcome: Outcome, *, events: bool) -> None:
    if events:
        click.echo("\n".join(outcome.events))
    click.echo("\n".join(outcome.wrong) or "nothing is wrong")


def _explain(machine: Simulation, plan: Plan) -> None:
    """Print what is wrong in the world of a plan, and in the smallest that fails."""
    click.echo(f"seed {plan.seed} fails: python -m kvref_testbed.simulation --seed {plan.seed} --events")
    smallest = shrink(plan, lambda each: bool(machine.run(each).wrong))
    path = Path(f"simulation-{plan.seed}.json")
    path.write_text(smallest.to_json(), encoding="utf-8")
    click.echo(f"shrunk: python -m kvref_testbed.simulation --plan {path} --events")
    _report(machine.run(smallest), events=True)


def _run(worlds: int, seed: int, workers: int, mutant: str) -> list[int]:
    """Run worlds in several processes, print a summary, and return the failing seeds."""
    began, busy = time.perf_counter(), time.process_time()
    parts = [range(seed + number, seed + worlds, workers) for number in range(workers)]
    if workers == 1:
        found: Iterable[tuple[list[int], int, int]] = [failing_of(parts[0], mutant)]
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            found = list(pool.map(failing_of, parts, [mutant] * workers))
    failing = sorted(each for seeds, *_ in found for each in seeds)
    answered, undecided = sum(each[1] for each in found), sum(each[2] for each in found)
    seconds = time.perf_counter() - began
    cpu = f", {(time.process_time() - busy) / worlds * 1000:.1f} ms of CPU each" if workers == 1 else ""
    click.echo(
        f"{worlds} worlds in {seconds:.0f} s: {worlds / seconds * 60:.0f} a minute{cpu}; {answered} replies;"
        f" {undecided} not decided; {len(failing)} failed"
    )
    return failing


@click.command()
@click.option("--worlds", default=1, show_default=True, help="Number of worlds.")
@click.option("--seed", default=0, show_default=True, help="Seed of the first one; the others follow.")
@click.option("--workers", default=1, show_default=True, help="Processes that share the worlds.")
@click.option("--plan", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Run this plan instead.")
@click.option("--events", is_flag=True, help="Print the events of a single world.")
@click.option("--mutant", default="", help="Plant a defect of `defects.py` or a mutant.")
def main(worlds: int, seed: int, workers: int, plan: Path | None, mutant: str, *, events: bool) -> None:
    """Simulate the server in worlds that a seed decides. Exit code 1: one has failed."""
    if plan is None and worlds > 1:
        failing = _run(worlds, seed, workers, mutant)
        broken = (DEFECTS | MUTANTS)[mutant] if mutant else None
        with simulation() as machine, nullcontext() if broken is None else planted(broken):
            for each in failing[:SHOWN]:
                _explain(machine, draw(each))
        sys.exit(bool(failing))
    with simulation() as machine:
        outcome = machine.run(draw(seed) if plan is None else from_json(plan.read_text(encoding="utf-8")))
    _report(outcome, events=events)
    sys.exit(bool(outcome.wrong))


if __name__ == "__main__":
    main()
