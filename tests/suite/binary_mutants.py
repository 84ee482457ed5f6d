"""Mutants of the binary protocol: headers, statuses, quiet opcodes, extras, cas numbers, words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mutant import mutant, of_fact, put

from kvref.wire import binary, opcodes
from kvref.wire import replies as r

of_fact("says_nothing_of_unknown_opcodes", "binary.unknown_opcode", "empty")
of_fact("ignores_cas_numbers_of_all_but_sets", "binary.cas_checked_by", "storage")
of_fact("loses_the_expiry_of_counters", "binary.created_expiry", "lost")
of_fact("takes_words_of_delete_for_keys", "mapping.switching_verbs", "get-and-store")
of_fact("cuts_keys_of_ranges", "range.answers", "lossy")

HIGH = 0x80


@mutant
def reads_opaques_as_signed() -> None:
    """An opaque from 2^31 on comes back as 0."""
    whole = binary._bytes

    def signed(frame: Any, *args: Any, **fields: Any) -> bytes:
        kept = frame if frame.opaque[0] < HIGH else replace(frame, opaque=bytes(4))
        return whole(kept, *args, **fields)

    put(binary, "_bytes", signed)


@mutant
def answers_without_cas_numbers() -> None:
    """What is stored is answered, but not under which cas number."""
    encode = binary.encode
    put(binary, "encode", lambda command, frame, reply, cas: encode(command, frame, reply, 0))


@mutant
def answers_quiet_sets() -> None:
    """setq is answered as set is."""
    opcodes.OPCODES[0x11] = replace(opcodes.OPCODES[0x11], quiet=False)


@mutant
def fails_quietly() -> None:
    """A quiet opcode says nothing of a failure either."""
    error = binary._error
    put(binary, "_error", lambda frame, status: b"" if frame.quiet else error(frame, status))


@mutant
def answers_quiet_misses() -> None:
    """getq says that there is nothing."""
    item = binary._item
    put(binary, "_item", lambda frame, reply: item(replace(frame, quiet=False), reply))


@mutant
def says_not_found_for_getk() -> None:
    """A miss of getk has the text of other misses and no key."""
    item = binary._item

    def keyless(frame: Any, reply: r.Items) -> bytes:
        return item(frame if reply.items else replace(frame, with_key=False), reply)

    put(binary, "_item", keyless)


@mutant
def says_not_stored_for_every_add() -> None:
    """add and replace are refused with the status of append."""
    status = binary._status

    def stored_or_not(command: Any, reply: r.Status) -> int:
        return binary.NOT_STORED if reply is r.Status.NOT_STORED else status(command, reply)

    put(binary, "_status", stored_or_not)


@mutant
def always_makes_counters() -> None:
    """incr of a missing key makes it whatever the expiry is."""
    put(opcodes, "NEVER_CREATE", -1)


@mutant
def adds_the_amount_to_the_initial_value() -> None:
    """A counter that is made begins at the initial value and the amount."""
    for opcode in (0x05, 0x06):
        build = opcodes.OPCODES[opcode].build

        def adding(header: Any, body: Any, rules: Any, build: Any = build) -> Any:
            command = build(header, body, rules)
            command.initial = None if command.initial is None else command.initial + command.delta
            return command

        opcodes.OPCODES[opcode] = replace(opcodes.OPCODES[opcode], build=adding)


@mutant
def takes_appends_with_extras() -> None:
    """append has the extras of set, and they are passed over."""
    for opcode in (0x0E, 0x19):
        opcodes.OPCODES[opcode] = replace(opcodes.OPCODES[opcode], extras=(0, 8))


@mutant
def reads_bodies_of_unknown_opcodes() -> None:
    """What an unknown opcode carries is read as the next frame."""
    skip = binary.BinaryParser._skip

    def hasty(self: binary.BinaryParser, header: Any) -> None:
        skip(self, header if header.opcode in opcodes.UNSUPPORTED else header._replace(body_length=0))

    put(binary.BinaryParser, "_skip", hasty)


@mutant
def narrows_flags() -> None:
    """A get shows flags without their highest bit."""
    item = binary._item

    def narrow(frame: Any, reply: r.Items) -> bytes:
        return item(frame, r.Items([replace(each, flags=each.flags & 0x7FFFFFFF) for each in reply.items]))

    put(binary, "_item", narrow)
