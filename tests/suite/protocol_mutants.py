"""Mutants of the protocol: words, bindings, conditions, expiry, answers; each function says what it breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mutant import Steps, mutant, of_fact, put

from kvref.semantics import arithmetic, change, ranges, retrieve, stats, store, verbs
from kvref.semantics.mapping import Directory, Mapping
from kvref.semantics.ports import Clear
from kvref.semantics.session import Session
from kvref.server import connection, server
from kvref.wire import commands, replies


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

    def lenient(self: Session, name: bytes) -> Steps:
        mapping = yield from switch(self, name)
        if mapping is None:
            mapping = self._bound = self.shared.directory.default
        return mapping

    put(Session, "switch", lenient)


@mutant
def ignores_a_changed_delimiter() -> None:
    """A reload takes new mappings and leaves the delimiter."""
    take = Directory.replace

    def stubborn(self: Directory, other: Directory) -> None:
        delimiter = self.delimiter
        take(self, other)
        self.delimiter = delimiter

    put(Directory, "replace", stubborn)


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
    put(server, "rules", lambda profile: replace(rules(profile), each_word_switches=False))


@mutant
def stores_whatever_the_cas_number() -> None:
    """`cas` stores with any number."""
    condition = store._condition

    def careless(command: commands.Store, row: Any) -> Any:
        answer = condition(command, row)
        return None if answer is replies.Status.EXISTS else answer

    put(store, "_condition", careless)


@mutant
def flushes_every_table() -> None:
    """`flush_all` empties all mapped tables."""

    def flush(session: Session, command: commands.FlushAll, now: int) -> Steps:
        tables: dict[str, Mapping] = {each.source: each for each in session.shared.directory.known.values()}
        for each in tables.values():
            yield Clear(each, session.rules.flush_on_reference)
        return (yield from change.flush_all(session, command, now))

    verbs._VERBS[commands.FlushAll] = flush


@mutant
def takes_default_for_an_alias() -> None:
    """`default` names the default mapping although no row is called so."""
    switch = Session.switch

    def alias(self: Session, name: bytes) -> Steps:
        if name != b"default":
            return (yield from switch(self, name))
        self._bound = self.shared.directory.default
        return self._bound

    put(Session, "switch", alias)


@mutant
def forgets_the_switch_of_a_silent_store() -> None:
    """A storage verb on `@@mapping.key` with noreply does not switch: no literal case asks, the machine finds it."""
    kind = commands.Store
    verbs._VERBS[kind] = _unbinding(verbs._VERBS[kind], lambda command: command.noreply)


of_fact("hides_expired_rows_from_get_only", "expiry.hides_from", "get")
of_fact("takes_thirty_days_for_a_date", "expiry.longest_relative", 2591999)
of_fact("gives_appended_items_other_flags", "append.flags_and_expiry", "request")
of_fact("counts_on_text", "arith.text", "leading-number")
of_fact("narrows_amounts", "arith.delta", "low-32-bits")
of_fact("flushes_at_once_whatever_the_delay", "flush.delay", "ignored")


@mutant
def ends_a_row_a_second_early() -> None:
    """A row is over in the second that its expiry names already."""
    put(Session, "expired", lambda self, row, now: row.expiry is not None and 0 < row.expiry <= now)


@mutant
def compares_half_a_cas_number() -> None:
    """`cas` compares the low 32 bits of the numbers."""
    condition = store._condition

    def careless(command: commands.Store, row: Any) -> Any:
        if command.verb == "cas" and row is not None:
            return None if (row.cas or 0) % (1 << 32) == command.cas % (1 << 32) else replies.Status.EXISTS
        return condition(command, row)

    put(store, "_condition", careless)


@mutant
def counts_below_zero() -> None:
    """`decr` by more than the number wraps."""
    put(
        arithmetic,
        "_result",
        lambda session, command, number: (
            (number + (command.delta if command.increment else -command.delta)) % (1 << 64)
        ),
    )


@mutant
def answers_a_repeated_key_once() -> None:
    """A key asked for twice in one get is answered once."""
    get = verbs._VERBS[commands.Get]

    def once(session: Session, command: commands.Get, now: int) -> Steps:
        return (yield from get(session, replace(command, words=list(dict.fromkeys(command.words))), now))

    verbs._VERBS[commands.Get] = once


@mutant
def shows_the_stored_spelling() -> None:
    """VALUE bears the key as the row has it, not as it was asked for."""
    item = Session.item

    def stored(self: Session, word: bytes, row: Any) -> replies.Item:
        return item(self, word if self.split(word) else retrieve_key(row), row)

    put(Session, "item", stored)


def retrieve_key(row: Any) -> bytes:
    """Return a row's key as bytes."""
    return row.key.encode() if isinstance(row.key, str) else row.key if isinstance(row.key, bytes) else b"%d" % row.key


@mutant
def answers_silent_commands() -> None:
    """noreply is not heard."""
    encode = connection.encode
    put(
        connection,
        "encode",
        lambda command, reply, cas: encode(
            replace(command, noreply=False) if getattr(command, "noreply", False) else command, reply, cas
        ),
    )


@mutant
def counts_hits_twice() -> None:
    """get_hits grows by two for each hit."""
    got = stats.Counters.got

    def twice(self: stats.Counters, word: bytes, *, hits: int, misses: int) -> None:
        got(self, word, hits=hits, misses=misses)
        self.get_hits += hits

    put(stats.Counters, "got", twice)


@mutant
def ignores_the_second_bound() -> None:
    """A range of two bounds has the first one only."""
    parse = ranges.parse

    def half(key: bytes) -> Any:
        found = parse(key)
        if found is None or None in (found.low, found.high):
            return found
        return ranges.Range(found.low, None) if key.startswith(b"@>") else ranges.Range(None, found.high)

    put(retrieve, "parse", half)


@mutant
def keeps_rows_over_a_reload() -> None:
    """A reload takes new options and a new default; mappings in use stay as they were read first."""
    take = Directory.replace

    def stubborn(self: Directory, other: Directory) -> None:
        known = self.known
        take(self, other)
        self.known = {**other.known, **known}

    put(Directory, "replace", stubborn)


@mutant
def reads_rows_anew_each_time() -> None:
    """A changed row of `containers` counts at once."""
    put(Directory, "find", lambda self, name: None)
