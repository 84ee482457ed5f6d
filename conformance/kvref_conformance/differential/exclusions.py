"""What the generator keeps out, by the endpoints that take part: `exclusions.toml` with rules and evidence."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import takewhile, zip_longest
from typing import TYPE_CHECKING, Final, TypedDict

from kvref_conformance.corpus.templates import bytes_of, sent
from kvref_conformance.data.tables import rows
from kvref_conformance.steps import Disconnect, Send
from kvref_conformance.wire.frames import FLUSHES, GETS, OPCODES, STORES, Frame, frames
from kvref_conformance.wire.next_word import depends_on_address

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvref_conformance.steps import Step

LONG_SWITCH_WORD: Final = "long-switch-word"
WORDS_AFTER_RANGE: Final = "words-behind-range"
UPPER_BOUND: Final = "upper-bound-on-secondary"
UNSIGNED_VALUES: Final = "unsigned-values"
APPEND_TO_INTEGERS: Final = "append-to-integers"
PREPEND_TO_INTEGERS: Final = "prepend-to-integers"
LONG_INTEGER_TEXT: Final = "long-integer-text"
LONG_WORD_AFTER: Final = "long-word-behind"
DELIMITERS_AFTER: Final = "delimiters-behind"
OPEN_END: Final = "open-end"
FLUSH_NUMBER: Final = "flush-number"
UNSIGNED_NOT_NULL: Final = "unsigned-not-null"
INTEGER_KEY_NULL: Final = "integer-key-null"
ADDRESS_OF_NEXT_WORD: Final = "address-of-next-word"
SHORT_INDEX: Final = "short-index"
FLUSH_DURING_READS: Final = "flush-beside-readers"
WELL_FORMED: Final = "well-formed-text"
VBUCKET_OF_GET: Final = "vbucket-of-get"
SHORT_APPEND: Final = "short-append"
COUNTERS: Final = "counters"
SLABS: Final = "slabs"
KEY_OF_VINDEX: Final = "key-of-vindex"

# Listed with the profiles if kvref over InnoDB takes part.
INNODB: Final = "innodb"
# Listed with the profiles if kvref over Vitess takes part.
VITESS: Final = "vitess"

_FLUSH: Final = re.compile(rb"(?m)^ *flush_all\b")
_NUMBERED_FLUSH: Final = re.compile(rb"(?<!verbosity 1\r\n)^ *flush_all +[^\r\n]", re.MULTILINE)
_WRITES: Final = re.compile(rb"\b(?:set|add|replace|append|prepend|cas)\b")
_RANGE: Final = re.compile(rb"@[<>]")
_APPENDS: Final = frozenset(OPCODES[name] for name in ("append", "prepend", "appendq", "prependq"))
_WRITING: Final = STORES | {OPCODES[name] for name in ("incr", "decr", "incrq", "decrq")}


class _Rule(TypedDict):
    name: str
    profiles: tuple[str, ...]
    rule: str
    reason: str
    evidence: tuple[str, ...]


def rules_for(profiles: Iterable[str]) -> frozenset[str]:
    """Return the names of the rules that are in force when endpoints of these profiles take part."""
    taking_part = set(profiles)
    listed = rows(files(__package__).joinpath("exclusions.toml"), "rules", _Rule)
    return frozenset(row["name"] for row in listed if taking_part.intersection(row["profiles"]))


def is_safe(data: bytes, rules: frozenset[str], *, secondary: bool = False, delimiter: bytes = b".") -> bool:
    """Return whether bytes may be sent, whatever of them is taken for a command.

    Args:
        data: one or several lines; data blocks count, as a refused storage line makes commands of them.
        rules: names of those in force.
        secondary: the world has a mapping over a secondary index.
        delimiter: of the world.
    """
    for whole in data.split(b"\n"):
        line = whole.split(b"\0")[0].removesuffix(b"\r")
        # The servers end words at blanks only; other white space counts here too where that keeps more out.
        words = line.split()
        if LONG_SWITCH_WORD in rules and any(len(word) == 250 and word.startswith(b"@@") for word in line.split(b" ")):
            return False
        if LONG_WORD_AFTER in rules and any(len(word) > 250 for word in line.split(b" ")[2:]):
            return False
        if DELIMITERS_AFTER in rules and any(_names_nothing(word, delimiter) for word in words[2:]):
            return False
        if WORDS_AFTER_RANGE in rules and any(_RANGE.search(word) for word in words[:-1]):
            return False
        if UPPER_BOUND in rules and secondary and any(b"@<" in word for word in words):
            return False
    return True


def are_frames_safe(data: bytes, rules: frozenset[str], *, secondary: bool = False) -> bool:
    """Return whether frames of the binary protocol may be sent; see `is_safe`."""
    sent = list(frames(data))
    if COUNTERS in rules and any(map(_counts, takewhile(lambda frame: not _resets(frame), sent))):
        return False
    for frame, following in zip_longest(sent, sent[1:]):
        if LONG_SWITCH_WORD in rules and len(frame.key) == 250 and frame.key.startswith(b"@@"):
            return False
        if UPPER_BOUND in rules and secondary and frame.opcode in GETS and b"@<" in frame.key:
            return False
        if VBUCKET_OF_GET in rules and frame.opcode in GETS and frame.status:
            # Where a key names no mapping nothing is looked up, and the number stays.
            is_get = following is not None and following.opcode in GETS and not following.key.startswith(b"@@")
            if not is_get or following.status or _RANGE.search(frame.key):
                return False
        if SLABS in rules and frame.opcode == OPCODES["stat"] and _may_be(frame, b"slabs"):
            return False
        if SHORT_APPEND in rules and frame.opcode in _APPENDS and frame.lengths[0] > frame.lengths[2]:
            return False
        if WELL_FORMED in rules and frame.opcode in _WRITING and not _is_well_formed(frame.key, frame.value):
            return False
    return True


def are_safe(steps: Iterable[Step], rules: frozenset[str], *, secondary: bool = False, delimiter: bytes = b".") -> bool:
    """Return whether the steps of a conversation may be taken; see `is_safe`."""
    connected: set[str] = set()
    for step in steps:
        if isinstance(step, Disconnect):
            connected.discard(step.on)
        if not isinstance(step, Send):
            continue
        data = bytes_of(step)
        connected.add(step.on)
        if FLUSH_DURING_READS in rules and len(connected) > 1 and flushes(data, binary=step.binary):
            return False
        if step.binary:
            if not are_frames_safe(data, rules, secondary=secondary):
                return False
            continue
        if not is_safe(data, rules, secondary=secondary, delimiter=delimiter):
            return False
        if FLUSH_NUMBER in rules and _NUMBERED_FLUSH.search(data):
            return False
        if WELL_FORMED in rules and _WRITES.search(data) and not _is_well_formed(data):
            return False
        # How long a cas number is will be seen when it is sent.
        certain = len(data) if isinstance(sent(step), str) else 0
        if ADDRESS_OF_NEXT_WORD in rules and depends_on_address(data, certain):
            return False
    return True


def _may_be(frame: Frame, name: bytes) -> bool:
    # 5.6 reads a key that is longer than its body to the end, over the next frame.
    cut_short = len(frame.key) < frame.lengths[0]
    return frame.key.startswith(name) or (cut_short and name.startswith(frame.key))


def _counts(frame: Frame) -> bool:
    return frame.opcode == OPCODES["stat"] and (not frame.key or frame.key.startswith((b"aggregate", b"detail dump")))


def _resets(frame: Frame) -> bool:
    return frame.opcode == OPCODES["stat"] and frame.key == b"reset"


def _names_nothing(word: bytes, delimiter: bytes) -> bool:
    # strtok ends names at any byte of the delimiter; of three bytes the plugin makes no mapping's name.
    return len(word) > 3 and word.startswith(b"@@") and not word[2:].strip(delimiter)


def _is_well_formed(*texts: bytes) -> bool:
    # In columns of character set utf8 too, which holds no letter of four bytes.
    try:
        return all(max(text.decode("utf-8"), default="") <= "\uffff" for text in texts)
    except UnicodeDecodeError:
        return False


def flushes(data: bytes, *, binary: bool) -> bool:
    """Return whether a flush is sent."""
    return any(frame.opcode in FLUSHES for frame in frames(data)) if binary else bool(_FLUSH.search(data))
