"""No literal case has a get whose reply depends on the address of a word (KV-MGET-026)."""

from __future__ import annotations

import re
import sys

from kvref_conformance.cases import all_cases
from kvref_conformance.steps import Send
from kvref_conformance.wire.next_word import depends_on_address
from kvref_conformance.wire.template import NAME

TAG = "z587703b5"  # in front of the name of each key, as `Judge.fresh_key` has it


def rendered(packet: str) -> bytes:
    """Return a packet with a key, or the name of a mapping, for each name."""

    def word(name: re.Match[str]) -> str:
        if name[2] == "q":
            return TAG[0]  # the mapping with a name of one letter
        return f"{TAG[:5]}{name[2]}" if name[2].startswith("m") else TAG + name[2]

    return NAME.sub(word, packet).encode("latin-1", "replace")


def test_a_word_at_such_a_place_is_found() -> None:
    assert depends_on_address(rendered("get {k2} @@{m2}.{k}\r\n"), sys.maxsize)
    assert not depends_on_address(rendered("get {k20} @@{m2}.{k}\r\n"), sys.maxsize)


def test_in_a_batch_any_word_at_such_a_place_counts() -> None:
    assert depends_on_address(b"get k1 k1 k1 k1 k1\r\n", sys.maxsize, counted=True)
    assert not depends_on_address(b"get k1 k1 k1 k1 k1\r\n", sys.maxsize)
    assert not depends_on_address(b"get k1 k1 k1 k1\r\n", sys.maxsize, counted=True)


def test_no_case_has_one() -> None:
    sends = [
        (case.id, step) for case in all_cases() for step in case.steps if isinstance(step, Send) and not step.binary
    ]
    assert len(sends) > 1000
    found = [
        name
        for name, step in sends
        if any(depends_on_address(rendered(each), sys.maxsize) for each in step.packets if re.match(" *b?gets? ", each))
    ]
    assert found == []
