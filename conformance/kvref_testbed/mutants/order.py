"""Mutants of the order of checks: which of two faults of a storage line the reply names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kvref.engine import dispatch, failures, values
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Insert, Lookup, Remove, Row
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import HIT
from kvref.engine.plans.store import Storage
from kvref.engine.session import Session
from kvref.engine.steps import delete, on_row
from kvref.engine.values import RefusedError
from kvref.protocol import command_table, commands, grammar, text
from kvref.protocol.replies import Fault, ServerError, Status
from kvref_testbed.mutants.mutant import OperationGen, breaks, put, put_decisions

LATER = ("replace", "append", "prepend", "cas")


def resolve_refused_lines(*lines: bytes) -> None:
    """Look for the mapping of a refused storage line before the line is refused.

    Args:
        lines: the replies to refused lines that name their key in `removes`.
    """

    def refused(session: Session, command: commands.Refused, now: int) -> OperationGen:
        if command.line in lines and command.removes:
            target = yield from session.resolve(command.removes, switches=True)
            if isinstance(target, Status):
                return target
            command = replace(command, removes=b"")
        return (yield from delete.refused(session, command, now))

    dispatch.HANDLERS[commands.Refused] = refused


@breaks("KV-ORDER-001")
def reads_the_key_before_it_counts_words() -> None:
    """A storage line with too few words and a key of more than 250 bytes is refused for its key."""
    parse = text.parse_line

    def hasty(line: bytes, rules: Any) -> Any:
        words = line.split()
        form = command_table.text_form(words[0], rules) if words else None
        stores = form is not None and form.length_at is not None and 1 < len(words) < form.fewest
        return (
            commands.Refused(grammar.BAD_FORMAT) if stores and len(words[1]) > rules.key_limit else parse(line, rules)
        )

    put(text, "parse_line", hasty)


@breaks("KV-ORDER-002")
def looks_for_the_mapping_before_the_numbers() -> None:
    """A storage line with a malformed number and an unknown mapping is answered NOT_FOUND."""
    refused = grammar.refused
    line = grammar.store

    def stored(words: list[bytes], rules: Any) -> Any:
        put(
            grammar,
            "refused",
            lambda command, length, rules: refused(replace(command, removes=words[1]), length, rules),
        )
        return line(words, rules)

    for verb in (b"set", b"add", b"replace", b"append", b"prepend", b"cas"):
        command_table.TEXT[verb] = replace(command_table.TEXT[verb], parse=stored)
    resolve_refused_lines(grammar.BAD_FORMAT)


@breaks("KV-ORDER-003")
def looks_for_the_mapping_before_the_size() -> None:
    """A set that is too large of an unknown mapping is answered NOT_FOUND."""
    resolve_refused_lines(grammar.TOO_LARGE)


@breaks("KV-ORDER-004")
def looks_for_the_mapping_before_the_end_of_the_data() -> None:
    """A storage command of an unknown mapping is answered NOT_FOUND wherever its data ends."""
    bad_chunk = text.bad_chunk
    put(text, "bad_chunk", lambda store: replace(bad_chunk(store), removes=store.word))
    resolve_refused_lines(text.BAD_CHUNK)


@breaks("KV-ORDER-005")
def measures_the_value_before_it_finds_the_mapping() -> None:
    """A value that is too long for the mapping in force is refused though no mapping has the name in the key."""
    run = dispatch.HANDLERS[commands.Store]

    def hasty(session: Session, command: commands.Store, now: int) -> OperationGen:
        if session.split(command.word) is not None and session.in_force is not None:
            values.split_value(session.in_force, command.data, session.shared.directory.separator, session.rules)
        return (yield from run(session, command, now))

    dispatch.HANDLERS[commands.Store] = hasty


@breaks("KV-ORDER-006")
def tests_the_condition_before_the_key() -> None:
    """A key that is too long for its column is a missing key to verbs that need an item."""

    def missing(decide: Any) -> Any:
        def decided(self: Any, row: Any, word: bytes, command: Any) -> Any:
            try:
                return decide(self, row, word, command)
            except RefusedError:
                if row[HIT] or command[0] not in LATER:
                    raise
                raise RefusedError(Status.NOT_FOUND if command[0] == "cas" else Status.NOT_STORED) from None

        return decided

    put_decisions(missing, Storage.conditional, Storage.append)


@breaks("KV-ORDER-007")
def measures_the_value_before_it_tests_the_condition() -> None:
    """A value that is too long for its column is refused though the condition of the verb does not hold."""

    def hastily(decide: Any) -> Any:
        def decided(self: Any, row: Any, word: bytes, command: Any) -> Any:
            bounds[self].values_of(command[3])
            return decide(self, row, word, command)

        return decided

    bounds: dict[Storage, Bound] = {}
    begin = Storage.__init__

    def begun(self: Storage, bound: Bound) -> None:
        begin(self, bound)
        bounds[self] = bound

    put(Storage, "__init__", begun)
    put_decisions(hastily, Storage.conditional, Storage.append)


@breaks("KV-ORDER-008")
def asks_the_table_before_it_measures_the_value() -> None:
    """The reply to a value that is too long names another column for which the table refuses the row."""
    run_on_row = on_row.run_on_row

    def late(
        session: Session, mapping: Mapping, key: bytes, command: commands.Store, now: int, decide: Any
    ) -> OperationGen:
        try:
            return (yield from run_on_row(session, mapping, key, command, now, decide))
        except RefusedError as unfit:
            if not (isinstance(unfit.reply, ServerError) and unfit.reply.fault is Fault.TOO_LARGE):
                raise
            cell = values.key_cell(mapping.key, key, session.rules)
            if (yield Lookup(mapping, cell, for_update=True)) is None:
                empty = Row(cell, tuple("" for _ in mapping.values), 0, 0, 0)
                cause = yield Insert(mapping, empty, session.rules.clears_unmapped)
                if cause is not None:
                    return failures.refused_by_table(session, cause)
                yield Remove(mapping, cell)
            raise

    put(on_row, "run_on_row", late)
