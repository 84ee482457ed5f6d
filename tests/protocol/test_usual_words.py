"""Usual words are keys in every profile, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvref import profiles
from kvref.engine.mapping import split_word
from kvref.engine.rules import rules
from kvref.engine.steps.retrieve import parse
from kvref.protocol import commands as c
from kvref.protocol.rules import WireRules, wire_rules
from kvref.protocol.text import TextParser
from kvref.protocol.usual_words import UsualWords

PROFILES = [profiles.load(name) for name in profiles.names()]
RULES = [wire_rules(profile, 1 << 20, key_limit=limit) for profile in PROFILES for limit in (250, 7, 3, 2, 1)]
# Nearly usual ones too, most of which the patterns leave.
_BYTES = st.sampled_from([bytes([each]) for each in b"ab0:.-+@ \r\n\0\t\x80\xff"])
WORDS = st.lists(_BYTES, min_size=1, max_size=9).map(b"".join)


def only_command(data: bytes, in_force: WireRules) -> c.Command | None:
    parser = TextParser(in_force)
    parser.feed(data)
    command = parser.next_command()
    assert parser.next_command() is None
    return command


@pytest.mark.parametrize("in_force", RULES)
@given(word=WORDS, switches=st.booleans())
def test_a_get_of_a_usual_word_is_a_get_of_it(in_force: WireRules, word: bytes, switches: bool) -> None:
    words, word = UsualWords(in_force), b"@@" + word if switches else word
    if (words.named if switches else words.word).fullmatch(word):
        assert only_command(b"get %b\r\n" % word, in_force) == c.Get([word], with_cas=False)


@pytest.mark.parametrize("in_force", RULES)
def test_usual_words_are_found(in_force: WireRules) -> None:
    words = UsualWords(in_force)
    assert words.word.fullmatch(b"a.b:1"[: in_force.key_limit])
    found = words.key_after_name(b"@@a.k", lambda word: word.removeprefix(b"@@a."))
    assert found == (b"k" if in_force.key_limit >= len(b"@@a.k") else None)


def test_what_a_set_takes_ends_where_values_are_too_large() -> None:
    for in_force in RULES:
        words = UsualWords(in_force)
        for length in ((1 << 20) - 300, 1 << 20, (1 << 20) + 1):
            line = b"set k 0 0 %d\r\n" % length
            command = only_command(line + b"v" * length + b"\r\n", in_force)
            assert isinstance(command, c.Store) == words.takes(b"k", length), (in_force, length)


@pytest.mark.parametrize("profile", PROFILES)
@given(word=WORDS, delimiter=st.sampled_from([b".", b":", b"ab", b"0"]))
def test_a_usual_word_neither_switches_nor_is_a_range(profile: profiles.Profile, word: bytes, delimiter: bytes) -> None:
    if UsualWords(RULES[0]).word.fullmatch(word):
        assert split_word(word, delimiter, rules(profile)) is None
        assert parse(word) is None
