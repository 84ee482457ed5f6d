"""A run: worlds, conversations, differences confirmed and made small by hypothesis, counts."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from hypothesis.errors import Flaky

from kvref_conformance.differential import exchange
from kvref_conformance.differential.exchange import Difference, Outcome, run_script
from kvref_conformance.differential.generate import (
    IN_ONE_WORLD,
    Script,
    conversations,
    in_world,
    parts_of,
    run_one,
    start_of,
    world_of,
)
from kvref_conformance.errors import CaseFailed
from kvref_conformance.judging.budget import Budget
from kvref_conformance.judging.findings import ShrinkLimit, ShrinkLimitReached

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hypothesis.database import ExampleDatabase

    from kvref_conformance.differential.configuration import Configuration
    from kvref_conformance.differential.exchange import Sides
    from kvref_conformance.differential.known_differences import Known
    from kvref_conformance.strategies.world import World

# A difference counts when it comes again so often.
CONFIRMATIONS: Final = 2
# The kind of a world in which one side does not listen.
PORT: Final = "port"
# Differences of one kind that are made small and shown; the others are counted.
EXAMPLES: Final = 2
# Seconds to wait for an answer while a difference is made small: tries that leave both sides waiting are many.
IMPATIENCE: Final = 0.6
# Seconds in which a difference is made small in its world, and tries of parts of this world, which cost seconds each.
SHRINKING_SECONDS: Final = 40.0
PARTS_TRIED: Final = 12


@dataclass(slots=True)
class Found:
    """A difference, made small where it repeats.

    Args:
        script: the conversation, made small where it repeats.
        outcome: how the script went.
        repeats: it came again each time.
    """

    script: Script
    outcome: Outcome
    repeats: bool

    @property
    def difference(self) -> Difference:
        """Return what differs."""
        assert self.outcome.difference is not None, "something differs"
        return self.outcome.difference


@dataclass(slots=True)
class Tally:
    """Counts of a run."""

    conversations: int = 0
    steps: int = 0
    worlds: int = 0
    not_run: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    unrepeated: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    numbers: dict[str, list[int]] = field(default_factory=dict)

    @property
    def differences(self) -> int:
        """Return how many conversations differ in each repetition."""
        return self.kinds.total()


class RunListener(Protocol):
    """Receives the progress of a run."""

    def step(self, text: str) -> None:
        """Show what begins now."""

    def finished(self, tally: Tally) -> None:
        """Show that one more conversation was run."""

    def found(self, found: Found) -> None:
        """Show a difference."""


class Run:
    """Run conversations on two servers.

    Args:
        sides: both servers.
        seed: seed of the conversations.
        steps: number of steps in a conversation.
        configuration: of the run.
        known: rows that explain differences.
        watch: receives the progress.
        database: keeps conversations that differ, for later runs.
    """

    def __init__(
        self,
        sides: Sides,
        seed: int,
        steps: int,
        configuration: Configuration,
        known: Sequence[Known],
        watch: RunListener,
        *,
        database: ExampleDatabase | None = None,
    ) -> None:
        self._sides = sides
        self._seed = seed
        self._steps = steps
        self._configuration = configuration
        self._known = known
        self._watch = watch
        self._database = database
        self._drawn: tuple[tuple[int, int], World] | None = None  # by seed and place
        self._loaded: World | None = None
        self._stale = False
        self._ports: list[str] = []
        self.tally = Tally()

    def run(self, numbers: Iterable[int]) -> Tally:
        """Run the conversations of these numbers, before them those that the database has; return the counts."""
        began = time.monotonic()
        for seed, number in dict.fromkeys([*self._failed_before(), *((self._seed, number) for number in numbers)]):
            world = self._world(seed, number)
            if self._loaded is not world:
                self._load(world)
            if self._ports != ["", ""]:
                self._closed(number, world)
            else:
                self._one(seed, number, world)
            self.tally.seconds = time.monotonic() - began
            self._watch.finished(self.tally)
        return self.tally

    def _failed_before(self) -> list[tuple[int, int]]:
        if self._database is None:
            return []
        failed = sorted(each.decode().split(":") for each in self._database.fetch(self._database_key))
        return [(int(seed), int(number)) for seed, number in failed]

    @property
    def _database_key(self) -> bytes:
        configuration = self._configuration
        names = [
            configuration.version,
            configuration.protocol,
            str(configuration.batches),
            str(self._steps),
            *sorted(configuration.rules),
        ]
        return f"kvref duel {' '.join(names)}".encode()

    def _world(self, seed: int, number: int) -> World:
        place = seed, number // IN_ONE_WORLD
        if self._drawn is None or self._drawn[0] != place:
            self._drawn = (place, world_of(seed, number, self._configuration))
            self.tally.worlds += 1
        return self._drawn[1]

    def _closed(self, number: int, world: World) -> None:
        """Count a conversation that could not be run, as a port is closed: a difference if the other one is open."""
        self.tally.not_run += 1
        if self._ports[0] == self._ports[1]:
            return
        self.tally.numbers.setdefault(PORT, []).append(number)
        self.tally.kinds[PORT] += 1
        if self.tally.kinds[PORT] <= EXAMPLES:
            difference = Difference(None, PORT, *(port or "open" for port in self._ports))
            self._watch.found(Found(Script(number, world, (), ()), Outcome(difference=difference), repeats=True))

    def _one(self, seed: int, number: int, world: World) -> None:
        """Run a conversation; if it differs, smaller ones in its world and then in parts of it."""
        small: Found | None = None
        same: set[str] = set()
        limit = ShrinkLimit(Budget(0), SHRINKING_SECONDS)

        def test(script: Script) -> None:
            nonlocal small
            if small is None:
                small = self._first(script) if script.steps else None  # the simplest example has no steps
            else:
                # Several choices of hypothesis may be the same conversation.
                content = repr((script.steps, script.rows))
                limit.check()
                if content in same or not self._try(script, small):
                    same.add(content)
                    return
            if small is not None:
                limit.found()
                raise CaseFailed

        try:
            draws = conversations(number, self._steps, self._configuration, world)
            run_one(draws, start_of(seed, number), test, self._database, self._database_key)
        except (CaseFailed, ShrinkLimitReached, Flaky):
            assert small is not None, "something differs"
            self._in_part_of_world(small)
            again = self._run(small.script)
            if again.difference is not None:
                small.outcome = again
            self._watch.found(small)
        if self._database is not None:
            keep = self._database.delete if small is None else self._database.save
            keep(self._database_key, f"{seed}:{number}".encode())

    def _first(self, script: Script) -> Found | None:
        """Run a conversation for the first time, and count; return what is to be made small."""
        outcome = self._run(script)
        self.tally.conversations += 1
        self.tally.steps += len(outcome.answers)
        self.tally.known.update(outcome.known)
        difference = outcome.difference
        if difference is None:
            return None
        again = [self._run(script).difference for _ in range(CONFIRMATIONS)]
        repeats = all(each is not None and each.kind == difference.kind for each in again)
        counts = self.tally.kinds if repeats else self.tally.unrepeated
        counts[difference.kind] += 1
        self.tally.numbers.setdefault(difference.kind, []).append(script.number)
        if counts[difference.kind] > EXAMPLES:
            return None
        found = Found(script, outcome, repeats)
        if not repeats:
            self._watch.found(found)
            return None
        return found

    def _in_part_of_world(self, small: Found) -> None:
        """Leave out mappings and tables that the difference does not need."""
        script, tries = small.script, 0

        def test(part: World) -> None:
            nonlocal tries
            tries += 1
            if tries > PARTS_TRIED:
                raise ShrinkLimitReached
            if part.usable and part != script.world and self._try(in_world(script, part), small):
                raise CaseFailed

        try:
            run_one(parts_of(script.world), f"parts of {script.number}", test)
        except (CaseFailed, ShrinkLimitReached, Flaky):
            return  # the smallest is in `small`

    def _try(self, script: Script, small: Found) -> bool:
        """Run a smaller script; if it differs in the same way, it takes the place of the smallest."""
        if self._loaded is not script.world:
            self._load(script.world)
        if self._ports != ["", ""]:
            return False
        outcome = self._run(script, IMPATIENCE)
        if any(exchange.SILENCE in (answer or b"") for pair in outcome.answers[:-1] for answer in pair):
            return False  # a data block lost its end
        if outcome.difference is None or outcome.difference.kind != small.difference.kind:
            return False
        small.script, small.outcome = script, outcome
        return True

    def _run(self, script: Script, patience: float = exchange.PATIENCE) -> Outcome:
        if self._loaded is not script.world:
            self._load(script.world)
        elif self._stale:
            self._ports = [side.renew(script.world) for side in self._sides]
        outcome = run_script(script, self._sides, self._known, patience)
        # What it did to the mappings must not meet the next one, nor a server that is gone.
        self._stale = script.changes_containers
        if outcome.died:
            self._loaded = None
        return outcome

    def _load(self, world: World) -> None:
        self._watch.step(f"world {world.number}")
        self._loaded = world
        self._stale = False
        self._ports = [side.prepare(world) for side in self._sides]
