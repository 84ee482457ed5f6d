"""Hold a drawn conversation and compare every answer with the store's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kvref_conformance.conversation import Exchange
from kvref_conformance.differential.shrink import fewer
from kvref_conformance.errors import CaseFailed
from kvref_conformance.findings import Enough, Search, signature
from kvref_conformance.stateful.arguments.commands import KEYS, LONGEST, Talk
from kvref_conformance.stateful.arguments.store import Store
from kvref_conformance.template import with_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.judge import Judge
    from kvref_conformance.stateful.arguments.commands import Command

# A conversation that hangs does so many times while it is shrunk.
PATIENCE: Final = 2.0


class Holder:
    """Conversations with one endpoint, one after the other.

    Args:
        judge: of the run.
    """

    def __init__(self, judge: Judge) -> None:
        self.search = Search(judge)
        self._last_talk = Talk((), frozenset())
        self.features = judge.endpoint.features.there
        self._judge = judge

    def hold(self, talk: Talk) -> None:
        """Hold one on fresh keys.

        Raises:
            CaseFailed: an answer is not allowed, in a way that is not among the known; the text is the conversation.
        """
        self.search.patience.check()
        keys = [self._judge.fresh_key(f"k{number}") for number in range(KEYS)]
        for number in talk.long:
            keys[number] = keys[number].ljust(LONGEST, "x")
            self._judge.keys.append(keys[number])
        store, exchanges = Store(keys), []
        connections = {on: self._judge.endpoint.connect() for on in "ab"}
        try:
            for on, packet in _packets(talk.commands):
                line = "".join(map(store.line, packet))
                answers = [store.answer(command) for command in packet]
                reply = connections[on].ask((line.encode("latin-1"),), patience=PATIENCE)
                self._judge.exercised.say(on, line.encode("latin-1"), reply.data.decode("latin-1"))
                note = reply.note(PATIENCE)
                allowed, got = "".join(text for text, _ in answers), reply.data.decode("latin-1")
                kept = not note and _learns(store, allowed, got, [key for _, shown in answers for key in shown])
                exchanges.append(Exchange(on, line, (allowed,), got, note, kept))
                if not kept:
                    request, wanted, rest = _parting(
                        [store.line(each) for each in packet], [a for a, _ in answers], got
                    )
                    found = signature(request, [wanted], f"{note} {rest}" if note else rest, keys)
                    try:
                        self.search.fail("any-arguments", tuple(exchanges), found)
                    except (CaseFailed, Enough):
                        self._last_talk = talk
                        raise
                    return
        finally:
            for connection in connections.values():
                connection.close()

    def shorten(self) -> None:
        """Leave commands out of the last conversation while it shows the same: hypothesis may have had no time to."""
        talk, search, wanted = self._last_talk, self.search, self.search.signature

        def shows(kept: Sequence[tuple[str, Command]], long: frozenset[int] = talk.long) -> bool:
            search.patience.begin()
            before = search.last
            try:
                self.hold(Talk(tuple(kept), long))
            except (CaseFailed, Enough):
                # Without a connection nothing is said, and what was last stays.
                if search.signature == wanted and search.last is not before:
                    return True
            search.last, search.signature = before, wanted
            return False

        kept = fewer(talk.commands, shows)
        shows(kept, frozenset())


def _packets(commands: tuple[tuple[str, Command], ...]) -> list[tuple[str, list[Command]]]:
    """Join what goes into one packet: neighbours on one connection, but no `cas`, whose number must be known."""
    packets: list[tuple[str, list[Command]]] = []
    for on, command in commands:
        before = packets[-1] if packets else None
        if before and before[0] == on and before[1][-1].with_next and not command.verb.startswith("cas"):
            before[1].append(command)
        else:
            packets.append((on, [command]))
    return packets


def _parting(lines: list[str], answers: list[str], got: str) -> tuple[str, str, str]:
    """Return the first request of a packet that is not answered as allowed, what is, and what came from there on."""
    for line, answer in zip(lines[:-1], answers[:-1], strict=True):
        found = re.match(with_numbers(answer), got)
        if found is None:
            return line, answer, got
        got = got[found.end() :]
    return lines[-1], answers[-1], got


def _learns(store: Store, allowed: str, got: str, keys: list[str]) -> bool:
    found = re.fullmatch(with_numbers(allowed), got)
    if found is None:
        return False
    return all(store.learn(key, int(number)) for key, number in zip(keys, found.groups(), strict=True))
