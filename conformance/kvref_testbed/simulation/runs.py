"""Worlds of many seeds, in one of several processes."""

from __future__ import annotations

from contextlib import nullcontext

from kvref_testbed.mutants import MUTANTS
from kvref_testbed.mutants.mutant import planted
from kvref_testbed.simulation.defects import DEFECTS
from kvref_testbed.simulation.plan import draw
from kvref_testbed.simulation.world import simulation


def failing_of(seeds: range, mutant: str = "") -> tuple[list[int], int, int]:
    """Return the failing seeds, the number of replies and of worlds that are not decided.

    Args:
        seeds: of the worlds.
        mutant: name of what is planted; empty: nothing.
    """
    broken = (DEFECTS | MUTANTS)[mutant] if mutant else None
    failing: list[int] = []
    answered = undecided = 0
    with simulation() as machine, nullcontext() if broken is None else planted(broken):
        for seed in seeds:
            outcome = machine.run(draw(seed))
            answered += outcome.answered
            undecided += outcome.undecided
            if outcome.wrong:
                failing.append(seed)
    return failing, answered, undecided
