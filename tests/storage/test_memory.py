"""The store in memory replies as the SQLite store does, for each profile with mappings."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from helpers.harness import Harness
from hypothesis import given, settings
from hypothesis import strategies as st

from kvref import profiles
from kvref.engine.cache.memory import Cache
from kvref.engine.counters import Counters
from kvref.engine.dispatch import execute
from kvref.engine.rules import rules
from kvref.engine.session import Session, Shared
from kvref.errors import ConfigError
from kvref.protocol.codec import encode, parser
from kvref.protocol.replies import Reply
from kvref.protocol.rules import wire_rules
from kvref.storage.memory import MemoryStore
from kvref.storage.stores import open_store

NOW = 1_700_000_000
KEYS = st.sampled_from([b"AA", b"aa", b"b", b"B", b"n", b"\xc3\xa9", b"\xff", b"k" * 32, b"@@aaa.b", b"@>a", b"@<=b"])
VALUES = st.sampled_from([b"", b"1", b"9", b"word", b"\xff\xfe", b"v" * 1024, b"v" * 1025])
SETS = st.builds(
    lambda verb, key, flags, exptime, value: (
        b"%s %s %d %d %d\r\n%s\r\n" % (verb, key, flags, exptime, len(value), value)
    ),
    st.sampled_from([b"set", b"add", b"replace", b"append", b"prepend"]),
    KEYS,
    st.sampled_from([0, 7]),
    st.sampled_from([0, 100, -1]),
    VALUES,
)
OTHERS = st.builds(
    lambda form, key: form % key,
    st.sampled_from([b"get %s\r\n", b"gets AA %s\r\n", b"delete %s\r\n", b"incr %s 5\r\n", b"touch %s 100\r\n"]),
    KEYS,
)
ALL = st.sampled_from([b"flush_all\r\n", b"lru_crawler metadump all\r\n", b"get @>=\r\n", b"stats items\r\n"])
CONVERSATIONS = st.lists(SETS | SETS | OTHERS | OTHERS | ALL, min_size=1, max_size=12).map(b"".join)


def reply_from_memory(profile: str, data: bytes) -> bytes:
    """Return the reply of a new store; its cas numbers begin at 1."""
    facts = profiles.load(profile)
    store = MemoryStore("memory://", facts)
    shared = Shared(rules(facts), store.read_directory(), itertools.count(1), Counters(), cache=Cache(NOW))
    commands, session = parser(data, wire_rules(facts, 1 << 20)), Session(shared)
    commands.feed(data)
    replies = []
    while (command := commands.next_command()) is not None:
        steps = execute(session, command, NOW)
        try:
            operation = next(steps)
            while True:
                operation = steps.send(store.execute(operation))
        except StopIteration as stop:
            reply: Reply = stop.value
            replies.append(encode(command, reply, session.written_cas))
    return b"".join(replies)


@pytest.mark.parametrize("profile", profiles.with_mappings())
def test_replies_are_those_of_sqlite(tmp_path: Path, profile: str) -> None:
    harness = Harness(tmp_path, profile)

    @settings(max_examples=60, deadline=None)
    @given(CONVERSATIONS)
    def compare(conversation: bytes) -> None:
        harness.sql.execute("DELETE FROM demo_test")
        harness.sql.execute("INSERT INTO demo_test VALUES ('AA', 'HELLO, HELLO', 8, 0, 0)")
        harness.shared.cas = itertools.count(1)
        reply = harness.say(conversation).removesuffix(b"<EOF>")
        harness.forget("a")
        assert reply_from_memory(profile, conversation) == reply

    try:
        compare()
    finally:
        harness.close()


@pytest.mark.parametrize(
    ("dsn", "text"),
    [("memory://name", "store 'memory://name': write memory://: it has no path"), ("file://x", "or memory://")],
)
def test_other_dsns_are_refused(dsn: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        open_store(dsn, profiles.load("kvref"), 1.0)
