"""Generated conversations of touch and meta commands with native memcached and with kvref over a table, side by side.

`KVREF_CONVERSATIONS=5000 pytest -rP tests/peers/test_memcached.py` runs that many (default 250). Intended differences are not
generated: times below zero; numbers of another length than before (memcached pads shorter ones, and with longer ones 1.6.18 loses
T); marks of numbers (any write ends one here); h and l, which memcached also answers after other verbs than mg; ma with N and q,
whose success 1.6.18 answers where it has stored; ma with C of an empty value, which is not a number before the comparison.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from helpers.live import target_or_skip
from helpers.serving import ask, serving
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.live
CONVERSATIONS = int(os.environ.get("KVREF_CONVERSATIONS", "250"))
CAS = re.compile(rb"((?:HD|VA \d+)(?: [^ \r\n]+)*? c|VALUE \S+ \d+ \d+ )(\d+)")
TIME = re.compile(rb"( t| exp=-)(\d{2,})")
DEBUG = re.compile(rb" (la|cas|fetch|cls|size)=\S+")
CLOCKS = 2  # seconds: one may begin between the two, and memcached's clock ticks once in each
TEXTS, NUMBERS = ("k1", "k2"), ("n1", "n2")
CODED = {"Ynli": "byb"}  # requested in base64 only: memcached answers in the encoding that the item was stored with

times = st.sampled_from(["0", "100", "5000", "1000000", "2000000000"])
bad = st.sampled_from(["x", "", "1x", "--1"])
deltas = st.sampled_from(["0", "1", "7"])
numbers = st.sampled_from(["1000000", "5555555"])
cas = st.sampled_from(["0", "1", "18446744073709551615", "{cas}", "{cas}", "{cas}"])
values = st.sampled_from(["x", "", "two words", "a\r\nb"])
odd = st.sampled_from(["z", "S", "E1", "M", "MXX", "Cx", "C-1", "Dx", "D-1", "Jx", "Tx", "Nx", "Rx", "Fx", "v", "1"])


def flags(*options: st.SearchStrategy[str] | str) -> st.SearchStrategy[str]:
    """Return some of these flags, now and then one that is wrong or there twice."""
    chosen = st.lists(
        st.one_of(*(st.just(each) if isinstance(each, str) else each for each in options)),
        max_size=6,
        unique_by=lambda flag: flag[:1],
    )
    spoilt = st.tuples(chosen, st.integers(0, 15), odd)
    return spoilt.map(lambda parts: " ".join([*parts[0], *([parts[2]] if parts[1] == 0 else [])]))


def token(letter: str, of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return of.map(lambda text: letter + text)


OPAQUE = token("O", st.sampled_from(["", "1", "o" * 31]))
HINTS = (token("P", st.sampled_from(["", "path/"])), token("L", st.just("x")))
PLAIN_KEYS = st.sampled_from(TEXTS)
REQUESTED = ("s", "t", "c", "f", "k", "v", "q", "u", OPAQUE, *HINTS)


def line(verb: str, keys: st.SearchStrategy[str], options: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(keys, options).map(lambda parts: f"{verb} {parts[0]} {parts[1]}\r\n")


def stores(
    keys: st.SearchStrategy[str], options: st.SearchStrategy[str], data: st.SearchStrategy[str]
) -> st.SearchStrategy[str]:
    return st.tuples(keys, data, options).map(
        lambda parts: f"ms {parts[0]} {len(parts[1])} {parts[2]}\r\n{parts[1]}\r\n"
    )


def several(keys: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(keys, min_size=1, max_size=3).map(" ".join)


ALL = st.sampled_from([*TEXTS, *NUMBERS, "nokey"])
modes = token("M", st.sampled_from("SEAPRSEAPRX"))
lines = st.one_of(
    line("mg", PLAIN_KEYS, flags(*REQUESTED, token("T", times), token("R", times))),
    line("mg", PLAIN_KEYS, flags(*REQUESTED, token("N", times), token("R", times))),
    line("mg", st.sampled_from(NUMBERS), flags(*REQUESTED, token("T", times))),
    stores(PLAIN_KEYS, flags("k", "c", "q", OPAQUE, token("F", deltas), token("T", times), token("C", cas), modes, "I"), values),
    stores(st.sampled_from(NUMBERS), flags("k", "q", token("T", times), token("M", st.sampled_from("SER"))), numbers),
    line("md", PLAIN_KEYS, flags("k", "q", OPAQUE, token("C", cas), "I", token("T", times), *HINTS)),
    line("md", ALL, flags("k", "q")),
    line("ma", st.sampled_from(NUMBERS), flags("k", "v", "q", "c", OPAQUE, token("D", deltas), token("C", cas), token("M", st.sampled_from("I+I+x")))),
    line("ma", st.sampled_from(NUMBERS), flags("v", token("N", times), token("J", numbers)).map(lambda text: f"{text} t")),
    line("ma", st.sampled_from(NUMBERS), flags("v", "t", token("T", times))),
    line("ma", PLAIN_KEYS, flags("v", "q", "k")),
    st.tuples(ALL, st.one_of(times, times, bad.filter(bool))).map(lambda parts: f"touch {parts[0]} {parts[1]}\r\n"),
    st.tuples(st.sampled_from(["gat", "gats"]), st.one_of(times, times, bad.filter(bool)), several(ALL)).map(lambda parts: f"{' '.join(parts)}\r\n"),
    line("gets", several(ALL), st.just("")),
    st.tuples(st.sampled_from(["set", "add", "replace", "append", "prepend"]), PLAIN_KEYS, times, values).map(
        lambda parts: f"{parts[0]} {parts[1]} 3 {parts[2]} {len(parts[3])}\r\n{parts[3]}\r\n"
    ),
    line("delete", ALL, st.just("")),
    st.tuples(st.sampled_from(["mg {0} b k v t", "mg {0} b v t", "ms {0} 1 b k c\r\ny", "md {0} b k", "me {0} b", "mg ab b", "ms a*b 1 b\r\ny"]), st.sampled_from([*CODED])).map(
        lambda parts: parts[0].format(parts[1]) + "\r\n"
    ),
    st.sampled_from(["mn\r\n", "mn 1\r\n", "mx k1\r\n", "me k1\r\n", "me nokey\r\n", "me\r\n", "mg\r\n", "ms k1 1\r\nxyz\r\n", "ms k1 x\r\n", "ms k1\r\n", "touch k1\r\n", "gat\r\n", "gat 0\r\n"]),
)  # fmt: skip


@dataclass
class Side:
    """One of the two endpoints; its cas numbers are replaced by the order of their first appearance."""

    port: int
    seen: list[bytes] = field(default_factory=list)
    last: str = "1"

    def hold(self, conversation: list[str]) -> list[tuple[bytes, list[int]]]:
        """Run a conversation without items; return its replies, and the remaining seconds in them."""
        self.seen, self.last = [], "1"
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as client:
            ask(client, b"flush_all\r\n")
            return [self._plain(ask(client, line.replace("{cas}", self.last).encode())) for line in conversation]

    def _plain(self, answer: bytes) -> tuple[bytes, list[int]]:
        def nth(found: re.Match[bytes]) -> bytes:
            if found[2] != b"0":
                self.last = found[2].decode()
                if found[2] not in self.seen:
                    self.seen.append(found[2])
            return found[1] + (b"0" if found[2] == b"0" else b"#%d" % self.seen.index(found[2]))

        answer = DEBUG.sub(b"", answer) if answer.startswith(b"ME ") else CAS.sub(nth, answer)
        return TIME.sub(rb"\1", answer), [int(found[2]) for found in TIME.finditer(answer)]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    store: Path = tmp_path_factory.mktemp("beside") / "rows.sqlite"
    with ExitStack() as stack:
        memcached = stack.enter_context(target_or_skip("memcached"))
        kvref = stack.enter_context(serving(store))
        yield Side(memcached.port), Side(kvref.port)


@settings(max_examples=CONVERSATIONS, deadline=None, derandomize=True, database=None)
@given(conversation=st.lists(lines, min_size=1, max_size=12))
def test_memcached_and_kvref_answer_alike(sides: tuple[Side, Side], conversation: list[str]) -> None:
    theirs, ours = (side.hold(conversation) for side in sides)
    texts = [
        [(line, text) for line, (text, _) in zip(conversation, answers, strict=True)] for answers in (ours, theirs)
    ]
    assert texts[0] == texts[1]
    for (_, mine), (_, other) in zip(ours, theirs, strict=True):
        assert all(abs(a - b) <= CLOCKS for a, b in zip(mine, other, strict=True)), (conversation, mine, other)
