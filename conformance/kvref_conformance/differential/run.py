"""A run: worlds, conversations, differences confirmed and made small, counts."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from kvref_conformance.differential import exchange
from kvref_conformance.differential.exclusions import are_safe
from kvref_conformance.differential.generate import IN_ONE_WORLD, Script, script_of, world_of
from kvref_conformance.differential.player import Difference, Outcome, hold
from kvref_conformance.differential.shrink import shrink, shrink_world

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kvref_conformance.differential.known_differences import Known
    from kvref_conformance.differential.player import Sides
    from kvref_conformance.differential.shapes import Ground
    from kvref_conformance.differential.world import World

# A difference counts when it comes again so often.
CONFIRMATIONS: Final = 2
# The kind of a world in which one side does not listen.
PORT: Final = "port"
# Differences of one kind that are made small and shown; the others are counted.
EXAMPLES: Final = 2
# Seconds to wait for an answer while a difference is made small: tries that leave both sides waiting are many.
IMPATIENCE: Final = 0.6


@dataclass(frozen=True, slots=True)
class Found:
    """A difference, made small where it repeats.

    Args:
        number: of the conversation it was met in.
        script: the conversation, made small where it repeats.
        outcome: how the script went.
        difference: what differs.
        repeats: it came again each time.
    """

    number: int
    script: Script
    outcome: Outcome
    difference: Difference
    repeats: bool


@dataclass(slots=True)
class Tally:
    """Counts of a run."""

    conversations: int = 0
    steps: int = 0
    worlds: int = 0
    not_held: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    unrepeated: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    numbers: dict[str, list[int]] = field(default_factory=dict)

    @property
    def differences(self) -> int:
        """Return how many conversations differ in each repetition."""
        return self.kinds.total()


class Watch(Protocol):
    """Receives the progress of a run."""

    def step(self, text: str) -> None:
        """Show what begins now."""

    def held(self, tally: Tally) -> None:
        """Show that one more conversation was run."""

    def found(self, found: Found) -> None:
        """Show a difference."""


class Run:
    """Run conversations on two servers.

    Args:
        sides: both servers.
        seed: seed of the conversations.
        steps: number of steps in a conversation.
        ground: configuration of the run.
        known: rows that explain differences.
        watch: receives the progress.
    """

    def __init__(
        self,
        sides: Sides,
        seed: int,
        steps: int,
        ground: Ground,
        known: Sequence[Known],
        watch: Watch,
    ) -> None:
        self._sides = sides
        self._seed = seed
        self._steps = steps
        self._ground = ground
        self._known = known
        self._watch = watch
        self._drawn: World | None = None
        self._loaded: World | None = None
        self._stale = False
        self._ports: list[str] = []
        self.tally = Tally()

    def hold(self, numbers: Iterable[int]) -> Tally:
        """Hold the conversations of these numbers and return the counts."""
        began = time.monotonic()
        for number in numbers:
            world = self._world(number)
            if self._loaded is not world:
                self._load(world)
            if self._ports != ["", ""]:
                self._closed(number, world)
            else:
                self._one(script_of(self._seed, number, self._steps, self._ground, world))
            self.tally.seconds = time.monotonic() - began
            self._watch.held(self.tally)
        return self.tally

    def _world(self, number: int) -> World:
        if self._drawn is None or self._drawn.number != number // IN_ONE_WORLD:
            self._drawn = world_of(self._seed, number, self._ground)
            self.tally.worlds += 1
        return self._drawn

    def _closed(self, number: int, world: World) -> None:
        """Count a conversation that could not be run, as a port is closed: a difference if the other one is open."""
        self.tally.not_held += 1
        if self._ports[0] == self._ports[1]:
            return
        self.tally.numbers.setdefault(PORT, []).append(number)
        self.tally.kinds[PORT] += 1
        if self.tally.kinds[PORT] <= EXAMPLES:
            difference = Difference(None, PORT, *(port or "open" for port in self._ports))
            self._watch.found(Found(number, Script(number, world, (), ()), Outcome(), difference, repeats=True))

    def _one(self, script: Script) -> None:
        outcome = self._hold(script)
        self.tally.conversations += 1
        self.tally.steps += len(outcome.answers)
        self.tally.known.update(outcome.known)
        if outcome.difference is not None:
            self._examine(script, outcome, outcome.difference)

    def _examine(self, script: Script, outcome: Outcome, difference: Difference) -> None:
        again = [self._hold(script).difference for _ in range(CONFIRMATIONS)]
        repeats = all(each is not None and each.kind == difference.kind for each in again)
        counts = self.tally.kinds if repeats else self.tally.unrepeated
        counts[difference.kind] += 1
        self.tally.numbers.setdefault(difference.kind, []).append(script.number)
        if counts[difference.kind] > EXAMPLES:
            return
        if repeats:
            script, outcome, difference = self._small(script, outcome, difference)
        self._watch.found(Found(script.number, script, outcome, difference, repeats))

    def _small(self, script: Script, outcome: Outcome, difference: Difference) -> tuple[Script, Outcome, Difference]:
        smaller = replace(script, rows=script.world.fill(singly=True))
        smaller = shrink(smaller, lambda each: self._differs(each, difference.kind))
        smaller = shrink_world(smaller, lambda each: self._differs(each, difference.kind))
        again = self._hold(smaller)
        if again.difference is None:
            return script, outcome, difference  # it comes and goes: show where it was met
        return smaller, again, again.difference

    def _differs(self, script: Script, kind: str) -> bool:
        world = script.world
        if not world.usable or not are_safe(
            script.steps, self._ground.care, secondary=world.secondary, delimiter=world.delimiter
        ):
            return False
        if self._loaded is not script.world:
            self._load(script.world)
        if self._ports != ["", ""]:
            return False
        outcome = self._hold(script, IMPATIENCE)
        if any(exchange.SILENCE in (answer or b"") for pair in outcome.answers[:-1] for answer in pair):
            return False  # a data block lost its end
        return outcome.difference is not None and outcome.difference.kind == kind

    def _hold(self, script: Script, patience: float = exchange.PATIENCE) -> Outcome:
        if self._loaded is not script.world:
            self._load(script.world)
        elif self._stale:
            self._ports = [side.renew(script.world) for side in self._sides]
        outcome = hold(script, self._sides, self._known, patience)
        # What it did to the mappings must not meet the next one, nor a server that is gone.
        self._stale = script.restless
        if outcome.died:
            self._loaded = None
        return outcome

    def _load(self, world: World) -> None:
        self._watch.step(f"world {world.number}")
        self._loaded = world
        self._stale = False
        self._ports = [side.prepare(world) for side in self._sides]
