"""The reference server with one rule broken each: `python mutants.py NAME serve --listen ... --store ...`.

A mutant is a function that patches the server's semantics before `kvref` starts; the suite must fail it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

from kvref.cli import main
from kvref.semantics import change, store, verbs
from kvref.semantics.mapping import Directory, Mapping
from kvref.semantics.ports import Clear
from kvref.semantics.session import Session
from kvref.server import server
from kvref.wire import commands, replies

Steps = Generator[Any, Any, Any]
MUTANTS: dict[str, Callable[[], None]] = {}


def mutant(patch: Callable[[], None]) -> Callable[[], None]:
    """Keep a mutant under its function's name."""
    MUTANTS[patch.__name__] = patch
    return patch


def _unbinding(verb: Callable[..., Steps], when: Callable[[Any], bool]) -> Callable[..., Steps]:
    def run(session: Session, command: Any, now: int) -> Steps:
        before = session._bound
        try:
            return (yield from verb(session, command, now))
        finally:
            if when(command):
                session._bound = before

    return run


@mutant
def none() -> None:
    """Change nothing: the control."""


@mutant
def forgets_the_switch() -> None:
    """`@@mapping.key` reaches its table, and the connection is back where it was afterwards."""
    for kind in (commands.Get, commands.Store):
        verbs._VERBS[kind] = _unbinding(verbs._VERBS[kind], lambda command: True)


@mutant
def shares_the_binding() -> None:
    """All connections have one binding."""
    shared: dict[str, Any] = {"_bound": None, "_generation": 0}

    def attribute(name: str) -> property:
        return property(lambda _: shared[name], lambda _, value: shared.update({name: value}))

    Session._bound, Session._generation = attribute("_bound"), attribute("_generation")


@mutant
def echoes_the_bare_key() -> None:
    """VALUE bears the key without its prefix."""
    get = verbs._VERBS[commands.Get]

    def bare(session: Session, command: commands.Get, now: int) -> Steps:
        reply = yield from get(session, command, now)
        for item in reply.items if isinstance(reply, replies.Items) else ():
            target = session.split(item.word)
            item.word = target.key if target and target.key else item.word
        return reply

    verbs._VERBS[commands.Get] = bare


@mutant
def takes_unknown_for_default() -> None:
    """A mapping that does not exist is the default one."""
    switch = Session.switch

    def lenient(self: Session, name: str) -> Steps:
        mapping = yield from switch(self, name)
        if mapping is None:
            mapping = self._bound = self.shared.directory.default
        return mapping

    Session.switch = lenient


@mutant
def ignores_a_changed_delimiter() -> None:
    """A reload takes new mappings and leaves the delimiter."""
    take = Directory.replace

    def stubborn(self: Directory, other: Directory) -> None:
        delimiter = self.delimiter
        take(self, other)
        self.delimiter = delimiter

    Directory.replace = stubborn


@mutant
def unbinds_at_a_failed_bind() -> None:
    """`bind` of an unknown name leads back to the default mapping."""

    def bind(session: Session, command: commands.Bind, now: int) -> Steps:
        reply = yield from change.bind(session, command, now)
        if reply is replies.Status.NOT_FOUND:
            session._bound = None
        return reply

    verbs._VERBS[commands.Bind] = bind


@mutant
def switches_once_in_a_get() -> None:
    """Words behind a key of the same get do not switch, as in 8.0."""
    rules = server.rules
    server.rules = lambda profile: replace(rules(profile), each_word_switches=False)


@mutant
def stores_whatever_the_cas_number() -> None:
    """`cas` stores with any number."""
    condition = store._condition

    def careless(session: Session, command: commands.Store, row: Any) -> Any:
        answer = condition(session, command, row)
        return None if answer is replies.Status.EXISTS else answer

    store._condition = careless


@mutant
def flushes_every_table() -> None:
    """`flush_all` empties all mapped tables."""

    def flush(session: Session, command: commands.FlushAll, now: int) -> Steps:
        tables: dict[str, Mapping] = {each.source: each for each in session.shared.directory.known.values()}
        for each in tables.values():
            yield Clear(each)
        return (yield from change.flush_all(session, command, now))

    verbs._VERBS[commands.FlushAll] = flush


@mutant
def takes_default_for_an_alias() -> None:
    """`default` names the default mapping although no row is called so."""
    switch = Session.switch

    def alias(self: Session, name: str) -> Steps:
        if name != "default":
            return (yield from switch(self, name))
        self._bound = self.shared.directory.default
        return self._bound

    Session.switch = alias


@mutant
def forgets_the_switch_of_a_silent_store() -> None:
    """A storage verb on `@@mapping.key` with noreply does not switch: no literal case asks, the machine finds it."""
    kind = commands.Store
    verbs._VERBS[kind] = _unbinding(verbs._VERBS[kind], lambda command: command.noreply)


if __name__ == "__main__":
    MUTANTS[sys.argv[1]]()
    main(sys.argv[2:])
