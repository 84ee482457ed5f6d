"""The table of all verbs and opcodes, from the server's table of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from generators.markup import code, indexed, table
from kvref.protocol.command_table import REFUSED_BEYOND_PLUGIN, TABLE, CommandRow
from kvref.protocol.commands import Right

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# What a listener rejects if it withholds a right, see `how-to/restrict-access.md`.
RIGHTS: Final = {
    Right.WRITE: "write",
    Right.FLUSH: "flush",
    Right.ALL_MAPPINGS: "all mappings",
    Right.LIST_KEYS: "list keys",
    Right.LIST_CLIENTS: "list clients",
}
EVERY_PROFILE: Final = "all"
DEFAULT_PROFILE: Final = "`kvref`"


def pages() -> Mapping[str, str]:
    """Return the table, which `reference/protocol.md` includes."""
    head = ("verbs of the text protocol", "binary opcodes", "right", "cache policy", "profiles")
    names = [verb.decode() for row in TABLE for verb in row.text]
    return {"reference/generated/verbs.txt": f"{indexed(*names)}\n{table(head, rows())}"}


def rows() -> Iterator[tuple[str, ...]]:
    """Yield a row for each command that clients can send."""
    for row in TABLE:
        if row.text or row.binary:
            yield (
                ", ".join(code(verb.decode()) for verb in row.text),
                ", ".join(code(f"0x{opcode:02x}") for opcode in row.binary),
                _rights(row),
                _policies(row),
                DEFAULT_PROFILE if row.beyond_plugin else EVERY_PROFILE,
            )
    for verb in REFUSED_BEYOND_PLUGIN:
        yield code(verb.decode()), "", "always rejected", "", DEFAULT_PROFILE


def _rights(row: CommandRow) -> str:
    if not isinstance(row.needs, Right):
        return "depends on its arguments"
    return ", ".join(name for right, name in RIGHTS.items() if right in row.needs)


def _policies(row: CommandRow) -> str:
    if not isinstance(row.policies, tuple):
        return "depends on its arguments"
    return ", ".join(code(kind.value) for kind in row.policies)
