"""Choose the protocol of a connection, text or binary."""

from __future__ import annotations

from typing import Final

from kvref.protocol import binary, text
from kvref.protocol import commands as c
from kvref.protocol.command_table import WRITING_OPCODES, WRITING_VERBS
from kvref.protocol.opcodes import REQUEST
from kvref.protocol.replies import Reply, ServerError
from kvref.protocol.rules import WireRules

Parser = text.TextParser | binary.BinaryParser
_ANY: Final = c.Get([], with_cas=False)  # an error has the same bytes for all commands


def parser(first: bytes, rules: WireRules) -> Parser:
    """Return the parser of a connection, which its first byte decides for good (more:switch-001)."""
    return binary.BinaryParser(rules) if first[0] == REQUEST else text.TextParser(rules)


def is_binary(known: Parser) -> bool:
    """Return whether a parser is of the binary protocol."""
    return isinstance(known, binary.BinaryParser)


def resumed(rules: WireRules, *, is_binary: bool) -> Parser:
    """Return the parser of a connection that goes on between two commands."""
    return binary.BinaryParser(rules) if is_binary else text.TextParser(rules, opening=False)


def begins_with_write(data: bytes, *, is_binary: bool) -> bool:
    """Return whether input begins with a command that writes, as far as its verb or opcode says that."""
    if is_binary:
        return len(data) > 1 and data[1] in WRITING_OPCODES
    return data[: max(data.find(b" "), 0)] in WRITING_VERBS


def encode(command: c.Command, reply: Reply, cas: int) -> bytes:
    """Return the bytes of a reply in the protocol of its command; `cas` as of `binary.encode`."""
    if command.frame is None:
        return text.encode(command, reply)
    return binary.encode(command, command.frame, reply, cas)


def replaced(reply: bytes, error: ServerError) -> bytes:
    """Return the bytes of an error, without fault, in place of an encoded reply to one command, in its protocol."""
    frame = binary.frame_of(reply)
    return text.encode(_ANY, error) if frame is None else binary.encode(_ANY, frame, error, 0)
