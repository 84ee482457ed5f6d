"""Mutants of the mapping: words, bindings, the default, what a reload takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kvref.engine import dispatch, rules
from kvref.engine.mapping import Directory
from kvref.engine.session import Session
from kvref.engine.steps import delete
from kvref.protocol import commands, replies
from kvref.server import server
from kvref_testbed.mutants.mutant import OperationGen, breaks, put, put_fact


def _unbinding(verb: Callable[..., OperationGen], when: Callable[[Any], bool]) -> Callable[..., OperationGen]:
    """Return a verb that leaves the binding of its connection as it is.

    Args:
        verb: a handler of commands.
        when: returns whether a command is one of these.
    """

    def run(session: Session, command: Any, now: int) -> OperationGen:
        if not when(command):
            return (yield from verb(session, command, now))
        session.start()
        twin = session.clone()
        twin.batch, twin.pending = session.batch, session.pending
        try:
            return (yield from verb(twin, command, now))
        finally:
            session.written_cas = twin.written_cas

    return run


@breaks("KV-MAP-002")
def forgets_the_switch() -> None:
    """`@@mapping.key` reaches its table, and the connection is back where it was afterwards."""
    for kind in (commands.Get, commands.Store):
        dispatch.HANDLERS[kind] = _unbinding(dispatch.HANDLERS[kind], lambda command: True)


@breaks("KV-MAP-052")
def sticks_to_the_mapping_of_a_key() -> None:
    """`sticky_mapping=0` changes nothing."""
    switch = Session.switch
    put(Session, "switch", lambda session, name, key=b"": switch(session, name))


@breaks("KV-MAP-053")
def never_sticks() -> None:
    """With `sticky_mapping=0`, a mapping without a key is for one command, too."""
    switch = Session.switch
    put(Session, "switch", lambda session, name, key=b"": switch(session, name, key or b"k"))


@breaks("KV-MAP-054")
def leaves_the_batch_open() -> None:
    """With `sticky_mapping=0`, a command with its own mapping leaves its batch open."""
    put(Session, "temporarily_bound", property(lambda session: False))


@breaks("KV-MAP-028")
def shares_the_binding() -> None:
    """All connections have one binding."""
    switch, mapping = Session.switch, Session.mapping
    latest: list[bytes] = []

    def switching(self: Session, name: bytes, key: bytes = b"") -> OperationGen:
        found = yield from switch(self, name, key)
        if found is not None:
            latest[:] = [name]
        return found

    def following(self: Session) -> OperationGen:
        for name in latest:
            yield from switch(self, name)
        return (yield from mapping(self))

    put(Session, "switch", switching)
    put(Session, "mapping", following)


@breaks("KV-MAP-001")
def echoes_the_bare_key() -> None:
    """VALUE bears the key without its prefix."""
    get = dispatch.HANDLERS[commands.Get]

    def bare(session: Session, command: commands.Get, now: int) -> OperationGen:
        reply = yield from get(session, command, now)
        for item in reply.items if isinstance(reply, replies.Items) else ():
            target = session.split(item.word)
            item.word = target.key if target and target.key else item.word
        return reply

    dispatch.HANDLERS[commands.Get] = bare


def default_name(session: Session) -> bytes:
    """Return the name of the default mapping."""
    return session.shared.directory.default.name.encode()


@breaks("KV-MAP-010")
def takes_unknown_for_default() -> None:
    """A mapping that does not exist is the default one."""
    switch = Session.switch

    def lenient(self: Session, name: bytes, key: bytes = b"") -> OperationGen:
        mapping = yield from switch(self, name, key)
        return (yield from switch(self, default_name(self), key)) if mapping is None else mapping

    put(Session, "switch", lenient)


@breaks("KV-DELIM-001")
def ignores_a_changed_delimiter() -> None:
    """A reload takes new mappings and leaves the delimiter."""
    take = Directory.replace

    def stubborn(self: Directory, other: Directory) -> None:
        delimiter = self.delimiter
        take(self, other)
        self.delimiter = delimiter

    put(Directory, "replace", stubborn)


@breaks("KV-BIND-003")
def unbinds_at_a_failed_bind() -> None:
    """`bind` of an unknown name leads back to the default mapping."""

    def bind(session: Session, command: commands.Bind, now: int) -> OperationGen:
        reply = yield from delete.bind(session, command, now)
        if reply is replies.Status.NOT_FOUND:
            yield from session.switch(default_name(session))
        return reply

    dispatch.HANDLERS[commands.Bind] = bind


@breaks("KV-MGET-008")
def switches_once_in_a_get() -> None:
    """Words behind a key of the same get do not switch, as in 8.0."""
    of_profile = rules.rules
    put(server, "rules", lambda profile: replace(of_profile(profile), each_word_switches=False))


@breaks("KV-DEF-004")
def takes_default_for_an_alias() -> None:
    """`default` names the default mapping although no row is called so."""
    switch = Session.switch

    def alias(self: Session, name: bytes, key: bytes = b"") -> OperationGen:
        return switch(self, default_name(self) if name == b"default" else name, key)

    put(Session, "switch", alias)


@breaks("KV-SEQ-001")
def forgets_the_switch_of_a_silent_store() -> None:
    """A storage verb on `@@mapping.key` with noreply does not switch: only generated commands find it."""
    kind = commands.Store
    dispatch.HANDLERS[kind] = _unbinding(dispatch.HANDLERS[kind], lambda command: command.noreply)


@breaks("KV-LIFE-003")
def keeps_rows_over_a_reload() -> None:
    """A reload takes new options and a new default; mappings in use stay as they were read first."""
    take = Directory.replace

    def stubborn(self: Directory, other: Directory) -> None:
        known = self.known
        take(self, other)
        self.known = {**other.known, **known}

    put(Directory, "replace", stubborn)


@breaks("KV-LIFE-003")
def reads_rows_anew_each_time() -> None:
    """A changed row of `containers` counts at once."""
    put(Directory, "find", lambda self, name: None)


@breaks("KV-MAP-047")
def takes_an_empty_key_for_none() -> None:
    """A storage verb on `@@mapping.` answers NOT_STORED, as the plugin does."""
    put_fact("mapping.empty_key", "not-stored")


def answer_words_without_a_key(*, delimited: bool) -> None:
    """Answer NOT_FOUND to `delete`, `incr` and `decr` of a mapping without a key before the mapping is looked for.

    Args:
        delimited: of words that end with the delimiter; otherwise of those that end with the name.
    """
    for kind in (commands.Delete, commands.Arithmetic):
        run = dispatch.HANDLERS[kind]

        def hasty(session: Session, command: Any, now: int, run: Any = run) -> OperationGen:
            target = session.split(command.word)
            if target is not None and not target.key and target.delimited is delimited:
                return replies.Status.NOT_FOUND
            return (yield from run(session, command, now))

        dispatch.HANDLERS[kind] = hasty


@breaks("KV-MAP-048")
def switches_only_for_a_key() -> None:
    """`delete`, `incr` and `decr` of `@@mapping` leave the connection where it is."""
    answer_words_without_a_key(delimited=False)


@breaks("KV-MAP-049")
def misses_an_empty_key() -> None:
    """`delete`, `incr` and `decr` of `@@mapping.` answer NOT_FOUND."""
    answer_words_without_a_key(delimited=True)
