"""Conversations of `kvref duel` on two embedded servers, of which one plans nothing.

python -m yardsticks.paths.worlds [--conversations N] [--seed S] [--profile P]...
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack

from kvref_conformance.corpus.targets.sqlite import SQLiteTarget
from kvref_conformance.differential import report
from kvref_conformance.differential.configuration import Configuration
from kvref_conformance.differential.exchange import Side
from kvref_conformance.differential.exclusions import rules_for
from kvref_conformance.differential.run import Found, Run, Tally
from kvref_conformance_cli.duel import NEWEST, VERSIONS
from kvref_testbed import targets

SIDES = {"steps": "kvref_testbed.steps", "plan": "kvref"}  # what `python -m` runs
PROFILES = ("kvref", "mysql-8.0", "mysql-5.6")


class _Shown:
    """Prints the differences."""

    def step(self, text: str) -> None:
        """Ignore what begins."""

    def finished(self, tally: Tally) -> None:
        """Ignore the progress."""

    def found(self, found: Found) -> None:
        """Print a difference."""
        print(report.describe(found, ("steps", "plan")), flush=True)


def run(profile: str, conversations: int, seed: int, steps: int = 30) -> Tally:
    """Run conversations with a profile; return the counts."""
    version = VERSIONS.get(profile, NEWEST)
    with ExitStack() as stack:
        sides = [
            Side(name, SQLiteTarget(stack.enter_context(targets.kvref_server(profile, program=program)), version))
            for name, program in SIDES.items()
        ]
        configuration = Configuration(version, rules_for({profile}))
        return Run((sides[0], sides[1]), seed, steps, configuration, (), _Shown()).run(range(conversations))


def main() -> int:
    """Run the command; return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", action="append", choices=PROFILES)
    given = parser.parse_args()
    differ = 0
    for profile in given.profile or PROFILES:
        tally = run(profile, given.conversations, given.seed)
        print(
            f"{profile}, seed {given.seed}: {tally.conversations} conversations, {tally.steps} steps,"
            f" {tally.worlds} worlds: {tally.differences} differ, {tally.unrepeated.total()} differed once",
            flush=True,
        )
        differ += tally.differences
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
