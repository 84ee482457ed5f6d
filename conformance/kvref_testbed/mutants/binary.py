"""Mutants of the binary protocol: headers, statuses, quiet opcodes, extras, cas numbers, words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kvref.engine.plans import frames
from kvref.protocol import binary, command_table, commands, opcodes
from kvref.protocol import replies as r
from kvref.server.planners import binary as planner
from kvref_testbed.mutants.mutant import breaks, put, put_fact


@breaks("KV-BINFRAME-014")
def says_nothing_of_unknown_opcodes() -> None:
    """The reply to an unknown opcode has no text."""
    put_fact("binary.unknown_opcode", "empty")


@breaks("KV-BINCMD-004")
def ignores_cas_numbers_of_all_but_sets() -> None:
    """append, prepend, delete, incr and decr are done whatever their cas number."""
    put_fact("binary.cas_checked_by", "storage")


@breaks("KV-BINARITH-017")
def loses_the_expiry_of_counters() -> None:
    """A counter that incr or decr makes is never over."""
    put_fact("binary.created_expiry", "lost")


@breaks("KV-BINMAP-012")
def takes_words_of_delete_for_keys() -> None:
    """Only get and the storage verbs read `@@mapping.key`."""
    put_fact("mapping.switching_verbs", "get-and-store")


@breaks("KV-BINRANGE-002")
def cuts_keys_of_ranges() -> None:
    """getk of a range answers keys cut to the length of the request's."""
    put_fact("range.answers", "lossy")


HIGH = 0x80
STATUS = slice(6, 8)  # bytes of a reply


@breaks("KV-BINFRAME-006")
def reads_opaques_as_signed() -> None:
    """An opaque from 2^31 on comes back as 0."""
    whole = binary.reply_frame

    def signed(frame: Any, *args: Any, **fields: Any) -> bytes:
        kept = frame if frame.opaque[0] < HIGH else replace(frame, opaque=bytes(4))
        return whole(kept, *args, **fields)

    put(binary, "reply_frame", signed)


@breaks("KV-BINSTORE-001")
def answers_without_cas_numbers() -> None:
    """What is stored is answered, but not under which cas number."""
    encode = binary.encode
    put(binary, "encode", lambda command, frame, reply, cas: encode(command, frame, reply, 0))


@breaks("KV-BINQUIET-001")
def answers_quiet_sets() -> None:
    """setq is answered as set is."""
    command_table.BINARY[0x11] = replace(command_table.BINARY[0x11], quiet=False)


@breaks("KV-BINQUIET-003")
def fails_quietly() -> None:
    """A quiet opcode does not reply to a failure either."""
    encode = binary.encode

    def silent(command: Any, frame: Any, reply: r.Reply, cas: int) -> bytes:
        whole = encode(command, frame, reply, cas)
        return b"" if frame.quiet and any(whole[STATUS]) else whole

    put(binary, "encode", silent)


def put_misses(miss: Callable[[Any], bytes]) -> None:
    """Put a reply to a miss in the place of `miss_frame`, which the codec and the plans call.

    Args:
        miss: returns the reply to a frame.
    """
    for module in (binary, frames, planner):
        put(module, "miss_frame", miss)


@breaks("KV-BINGET-005")
def answers_quiet_misses() -> None:
    """getq says that there is nothing."""
    miss_frame = binary.miss_frame
    put_misses(lambda frame: miss_frame(replace(frame, quiet=False)))


@breaks("KV-BINGET-004")
def says_not_found_for_getk() -> None:
    """A miss of getk has the text of other misses and no key."""
    miss_frame = binary.miss_frame
    put_misses(lambda frame: miss_frame(replace(frame, with_key=False)))


@breaks("KV-BINSTORE-007")
def says_not_stored_for_every_add() -> None:
    """add and replace are refused with the status of append."""
    encode = binary.encode

    def as_append(command: Any, frame: Any, reply: r.Reply, cas: int) -> bytes:
        refused = reply is r.Status.NOT_STORED and isinstance(command, commands.Store)
        return encode(replace(command, verb="append") if refused else command, frame, reply, cas)

    put(binary, "encode", as_append)


@breaks("KV-BINARITH-015")
def always_makes_counters() -> None:
    """incr of a missing key makes it whatever the expiry is."""
    put(opcodes, "NEVER_CREATE", -1)


@breaks("KV-BINARITH-013")
def adds_the_amount_to_the_initial_value() -> None:
    """A counter that is made begins at the initial value and the amount."""
    for opcode in (0x05, 0x06):
        build = command_table.BINARY[opcode].build

        def adding(header: Any, body: Any, rules: Any, build: Any = build) -> Any:
            command = build(header, body, rules)
            command.initial = None if command.initial is None else command.initial + command.delta
            return command

        command_table.BINARY[opcode] = replace(command_table.BINARY[opcode], build=adding)


@breaks("KV-BINLEN-010")
def takes_appends_with_extras() -> None:
    """append has the extras of set, and they are passed over."""
    for opcode in (0x0E, 0x19):
        command_table.BINARY[opcode] = replace(command_table.BINARY[opcode], extras=(0, 8))


@breaks("KV-BINFRAME-016")
def reads_bodies_of_unknown_opcodes() -> None:
    """What an unknown opcode carries is read as the next frame."""
    header_at = opcodes.header_at
    known = {*command_table.BINARY, *command_table.BINARY_BEYOND_PLUGIN, *opcodes.UNSUPPORTED}

    def bodiless(buffer: Any, at: int) -> Any:
        header = header_at(buffer, at)
        return header if header.opcode in known else header._replace(body_length=0)

    put(binary, "header_at", bodiless)


@breaks("KV-BINSTORE-003")
def narrows_flags() -> None:
    """A get shows flags without their highest bit."""
    found_frame = binary.found_frame

    def narrow(opcode: int, opaque: bytes, key: bytes, flags: int, *rest: Any) -> bytes:
        return found_frame(opcode, opaque, key, flags & 0x7FFFFFFF, *rest)

    for module in (binary, frames):
        put(module, "found_frame", narrow)


@breaks("KV-BINFRAME-022")
def ends_texts_with_a_full_stop() -> None:
    """The texts of the statuses 0x02, 0x03 and 0x05 end with a full stop, as in memcached."""
    for status in (0x02, 0x03, 0x05):
        binary.TEXTS[status] += b"."
