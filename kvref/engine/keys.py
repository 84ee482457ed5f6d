"""The `@@` word: split into mapping name and key by the delimiter, as each profile splits it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kvref.engine.mapping import Naming
from kvref.engine.rules import Rules
from kvref.protocol.rules import MAX_KEY

MARK: Final = b"@@"
_UNSENDABLE: Final = re.compile(rb"[\0\r\n ]")


class Switch(NamedTuple):
    """A word that selects a mapping; `key` is empty if there is none, `delimited` is whether there is a delimiter."""

    name: bytes
    key: bytes
    delimited: bool


def is_sendable(key: bytes) -> bool:
    """Return whether a client can send a key: SQL may have written a row under one that no line can have."""
    return 0 < len(key) <= MAX_KEY and not _UNSENDABLE.search(key)


def split_word(word: bytes, delimiter: bytes, rules: Rules) -> Switch | None:
    """Split a client's word, or return None for an ordinary key.

    Args:
        word: 1 to 250 bytes without blanks.
        delimiter: value of table_map_delimiter, 1 to 32 bytes.
        rules: how the profile splits (check_key_name_for_map_switch and innodb_switch_mapping in innodb_engine.cc).
    """
    if not word.startswith(MARK) or len(word) < rules.shortest_word:
        return None
    rest = word[len(MARK) :]
    if rules.delimiter_is_string:
        name, found, key = rest.partition(delimiter)
        return Switch(name, key, bool(found))
    # strtok_r: the word and the delimiter, a set of bytes, end at NUL (more:bin-207), leading members are skipped; the
    # delimiter's whole length is cut off after the name, whatever bytes are there.
    members, name = delimiter.split(b"\0")[0], rest.split(b"\0")[0]
    name = name.lstrip(members) if members else name
    for position, byte in enumerate(name):
        if byte in members:
            name = name[:position]
            break
    key = word[len(MARK) + len(name) + len(delimiter) :]
    return Switch(name, key, delimited=len(name) < len(rest))


def mapping_name(name: bytes, naming: Naming, rules: Rules) -> str:
    """Return the name of a mapping as a client wrote it: to the plugin a key of the column `containers.name`.

    Args:
        name: 0 to 250 bytes.
        naming: character set and width of that column.
        rules: whether a name is cut like a key.
    """
    malformed = naming.charset.malformed_at(name)
    if not rules.cuts_keys:
        return naming.charset.decode(name) if malformed is None else name.decode("utf-8", "replace")  # names nothing
    return naming.charset.decode(name[:malformed])[: naming.width]


def is_whole_name(name: bytes, text: str, naming: Naming, rules: Rules) -> bool:
    """Return whether `mapping_name`, which returned `text`, cut nothing off a client's name; the rest is as there."""
    return not rules.cuts_keys or naming.charset.encode(text) == name
