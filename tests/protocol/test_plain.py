"""The parser reads simple lines and frames literally in every profile."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvref import profiles
from kvref.engine.mapping import split_word
from kvref.engine.rules import rules
from kvref.engine.verbs.retrieve import parse
from kvref.protocol import commands as c
from kvref.protocol.binary import BinaryParser
from kvref.protocol.fast_path import PlainLines
from kvref.protocol.plain_frames import PlainFrames, command_of
from kvref.protocol.rules import WireRules, wire_rules
from kvref.protocol.text import TextParser

PROFILES = [profiles.load(name) for name in profiles.names()]
RULES = [wire_rules(profile, 1 << 20, key_limit=limit) for profile in PROFILES for limit in (250, 7)]
# Nearly plain ones too, most of which the patterns leave.
_BYTES = st.sampled_from([bytes([each]) for each in b"ab0:.-+@ \r\n\0\t\x80\xff"])
WORDS = st.lists(_BYTES, min_size=1, max_size=9).map(b"".join)
NOREPLY = st.sampled_from([b"", b" noreply", b" noreply ", b" norepl", b" noreply x"])
NUMBERS = st.one_of(
    st.integers(0, 10**10).map(lambda number: b"%d" % number),
    st.from_regex(rb"0{0,3}[0-9]{1,10}", fullmatch=True),
    st.sampled_from([b"-1", b"+1", b" 1", b"1\t", b"", b"x"]),
)


def only_command(data: bytes, in_force: WireRules) -> c.Command | None:
    parser = TextParser(in_force)
    parser.feed(data)
    command = parser.next_command()
    assert parser.next_command() is None
    return command


@pytest.mark.parametrize("in_force", RULES)
@given(word=WORDS)
def test_a_plain_get_is_a_get_of_its_word(in_force: WireRules, word: bytes) -> None:
    line = b"get %b\r\n" % word
    found = PlainLines(in_force).get.fullmatch(line)
    if found is not None:
        assert only_command(line, in_force) == c.Get([found[1]], with_cas=False)


@pytest.mark.parametrize("in_force", RULES)
@given(words=st.lists(WORDS, min_size=1, max_size=4), with_cas=st.booleans())
def test_a_plain_get_of_several_keys_is_a_get_of_its_words(
    in_force: WireRules, words: list[bytes], with_cas: bool
) -> None:
    line = b"%b %b\r\n" % (b"gets" if with_cas else b"get", b" ".join(words))
    found = PlainLines(in_force).getting.fullmatch(line)
    if found is not None:
        assert only_command(line, in_force) == c.Get(found[2].split(b" "), with_cas=with_cas)


@pytest.mark.parametrize("in_force", RULES)
@given(word=WORDS, flags=NUMBERS, length=st.integers(0, 12), spelled=NUMBERS, last=NOREPLY)
def test_a_plain_set_is_a_set_of_what_stands_in_it(
    in_force: WireRules, word: bytes, flags: bytes, length: int, spelled: bytes, last: bytes
) -> None:
    lines, data = PlainLines(in_force), b"v" * length
    for size in (b"%d" % length, spelled):
        line = b"set %b %b 0 %b%b\r\n" % (word, flags, size, last)
        found = lines.set.fullmatch(line)
        if found is None or int(found[3]) > 1 << 16 or not lines.takes(found[1], int(found[3])):
            continue
        data = b"v" * int(found[3])
        stored = c.Store("set", found[1], int(found[2]), 0, data, noreply=found[4] is not None)
        assert only_command(line + data + b"\r\n", in_force) == stored


@pytest.mark.parametrize("in_force", RULES)
@given(
    verb=st.sampled_from([b"set", b"add", b"replace"]),
    word=WORDS,
    flags=NUMBERS,
    exptime=NUMBERS,
    switches=st.booleans(),
    last=NOREPLY,
)
def test_a_plain_storage_line_is_what_stands_in_it(
    in_force: WireRules, verb: bytes, word: bytes, flags: bytes, exptime: bytes, switches: bool, last: bytes
) -> None:
    line = b"%b %b %b %b 3%b\r\n" % (verb, b"@@" + word if switches else word, flags, exptime, last)
    found = PlainLines(in_force).storing.fullmatch(line)
    if found is not None:
        quiet = found[6] is not None
        stored = c.Store(found[1].decode(), found[2], int(found[3]), int(found[4]), b"abc", noreply=quiet)
        assert only_command(line + b"abc\r\n", in_force) == stored


@pytest.mark.parametrize("in_force", RULES)
@given(
    up=st.booleans(),
    word=WORDS,
    delta=st.one_of(NUMBERS, st.integers(0, 1 << 64).map(lambda each: b"%d" % each)),
    last=NOREPLY,
)
def test_a_plain_sum_is_one_of_what_stands_in_it(
    in_force: WireRules, up: bool, word: bytes, delta: bytes, last: bytes
) -> None:
    line = b"%b %b %b%b\r\n" % (b"incr" if up else b"decr", word, delta, last)
    found = PlainLines(in_force).counting.fullmatch(line)
    if found is not None:
        assert found[1] == (b"incr" if up else b"decr")
        assert only_command(line, in_force) == c.Arithmetic(up, found[2], int(found[3]), found[4] is not None)


@pytest.mark.parametrize("in_force", RULES)
@given(word=WORDS, switches=st.booleans(), last=NOREPLY)
def test_a_plain_delete_is_one_of_its_word(in_force: WireRules, word: bytes, switches: bool, last: bytes) -> None:
    lines, word = PlainLines(in_force), b"@@" + word if switches else word
    found = lines.deleting.fullmatch(b"delete %b%b\r\n" % (word, last))
    if found is not None:
        assert only_command(found[0], in_force) == c.Delete(found[1], found[2] is not None)
    if lines.named.fullmatch(word):
        assert only_command(b"get %b\r\n" % word, in_force) == c.Get([word], with_cas=False)


@pytest.mark.parametrize("in_force", RULES)
def test_plain_lines_are_found(in_force: WireRules) -> None:
    assert PlainLines(in_force).getting.match(b"gets a @@m.b c\r\nget")
    lines = PlainLines(in_force)
    assert lines.storing.fullmatch(b"add k 1 20 3\r\n")
    assert lines.storing.fullmatch(b"set @@a.k 1 20 3 noreply\r\n")
    assert lines.set.fullmatch(b"set k 1 0 3 noreply\r\n")
    assert lines.counting.fullmatch(b"decr k 18\r\n")
    assert lines.counting.fullmatch(b"incr k 18 noreply\r\n")
    assert lines.deleting.fullmatch(b"delete k\r\n")
    assert lines.deleting.fullmatch(b"delete k noreply\r\n")
    assert lines.named.fullmatch(b"@@a.k")


def test_what_a_plain_set_takes_ends_where_values_are_too_large() -> None:
    for in_force in RULES:
        lines = PlainLines(in_force)
        for length in ((1 << 20) - 300, 1 << 20, (1 << 20) + 1):
            line = b"set k 0 0 %d\r\n" % length
            command = only_command(line + b"v" * length + b"\r\n", in_force)
            assert isinstance(command, c.Store) == lines.takes(b"k", length), (in_force, length)


@pytest.mark.parametrize("profile", PROFILES)
@given(word=WORDS, delimiter=st.sampled_from([b".", b":", b"ab", b"0"]))
def test_a_plain_word_neither_switches_nor_is_a_range(profile: profiles.Profile, word: bytes, delimiter: bytes) -> None:
    if PlainLines(RULES[0]).word.fullmatch(word):
        assert split_word(word, delimiter, rules(profile)) is None
        assert parse(word) is None


HEADERS = st.tuples(
    st.sampled_from([0x80, 0x80, 0x80, 0x80, 0x81]),
    st.sampled_from([0x00, 0x09, 0x0C, 0x0D, 0x0A, 0x01, 0x11, 0x02, 0x03, 0x13, 0x0E, 0x04]), st.integers(0, 9),
    st.sampled_from([0, 0, 0, 1]), st.sampled_from([0, 0, 0, 0, 1, -1]), st.sampled_from([0, 0, 0, 5]),
    st.sampled_from([0, 0, 999_999_999, 1_000_000_000, (1 << 32) - 1]),
)  # fmt: skip
STORING_OPCODES = (0x01, 0x11, 0x02, 0x03, 0x13)


@pytest.mark.parametrize("in_force", RULES)
@given(headers=st.lists(HEADERS, min_size=1, max_size=5), cut=st.sampled_from([0, 0, 0, 1]), sets=st.booleans())
def test_plain_frames_are_gets_noops_and_sets(
    in_force: WireRules, headers: list[tuple[int, ...]], cut: int, sets: bool
) -> None:
    data, plain = b"", []
    for number, (magic, opcode, key, vbucket, drawn, cas, wide) in enumerate(headers):
        stores, more = opcode in STORING_OPCODES, max(drawn, -key)
        extras = struct.pack(">II", wide, wide) if stores else b""
        body = extras + b"k" * (key + more)
        data += struct.pack(">BBHBBHIIQ", magic, opcode, key, len(extras), 0, vbucket, len(body), number, cas) + body
        lengths = more >= 0 and key > 0 if stores else more == 0 and (key == 0) == (opcode == 0x0A)
        known = (sets and not cas and wide < 1_000_000_000) if stores else opcode not in {0x0E, 0x04}
        plain.append(magic == 0x80 and not vbucket and lengths and known and key <= in_force.key_limit)
    if cut:
        data, plain[-1] = data[:-cut], False
    frames, ends = PlainFrames(in_force).first(data, 4, sets=sets)
    assert len(frames) == len(ends) == min([*plain, False].index(False), 4)
    parser = BinaryParser(in_force)
    parser.feed(data[: ends[-1]] if ends else b"")
    assert [command_of(frame) for frame in frames] == [parser.next_command() for _ in frames]
    assert parser.next_command() is None
    assert not parser.pending
    assert PlainFrames(in_force).first(data, len(frames) - 1, sets=sets)[0] == frames[:-1]


@pytest.mark.parametrize("in_force", RULES)
def test_no_frame_is_plain_whose_value_is_too_large(in_force: WireRules) -> None:
    frames = PlainFrames(in_force)
    lengths = []
    limit = in_force.value_limit or 1 << 20
    for length in range(limit - 4, limit + 2):
        body = bytes(8) + b"key" + b"v" * length
        data = struct.pack(">BBHBBHIIQ", 0x80, 1, 3, 8, 0, 0, len(body), 0, 0) + body
        parser = BinaryParser(in_force)
        parser.feed(data)
        assert frames.first(data, 1, sets=True)[0] == [
            command for command in [parser.next_command()] if isinstance(command, c.Store)
        ]
        lengths.append(len(frames.first(data, 1, sets=True)[0]))
    assert set(lengths) == ({1} if in_force.value_limit is None else {0, 1})
