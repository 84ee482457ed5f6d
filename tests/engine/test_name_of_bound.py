"""What is in front of the key in one word that names the bound mapping names it in front of any other key."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.harness import Harness
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kvref.engine.mapping import mapping_name
from kvref.engine.plans.words import Words
from kvref.engine.session import Session

SIGNS = "m.:|@é"
PROFILES = ("kvref", "mysql-8.0", "mysql-5.6")


@pytest.fixture(scope="module")
def harnesses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Harness]:
    return {name: Harness(Path(tmp_path_factory.mktemp("harness")), name) for name in PROFILES}


def bound(harness: Harness, name: str, delimiter: bytes) -> tuple[Session, Words]:
    """Return a session that is bound to the only mapping, which has a name, and its words."""
    directory = harness.shared.directory
    directory.delimiter = delimiter
    directory.default.name = mapping_name(name.encode(), directory.naming, harness.shared.rules)
    session = Session(harness.shared)
    session.start()
    assert [*session.switch(name.encode())] == [], "it is in force by then"
    return session, Words(session)


@settings(max_examples=500)
@given(
    profile=st.sampled_from(PROFILES),
    name=st.text(SIGNS, min_size=1, max_size=3),
    delimiter=st.text(SIGNS, min_size=1, max_size=2),
    words=st.lists(st.lists(st.sampled_from(["NAME", "DELIMITER", *SIGNS, "k"]), min_size=3, max_size=6), max_size=12),
)
@example("mysql-8.0", "m", ".", [["DELIMITER", "DELIMITER", "NAME", "DELIMITER", "k"], [".", ".", "|", ".", "k"]])
def test_the_name_of_one_word_names_it_in_any(
    harnesses: dict[str, Harness], profile: str, name: str, delimiter: str, words: list[list[str]]
) -> None:
    session, words_of_bound = bound(harnesses[profile], name, delimiter.encode())
    of = {"NAME": name, "DELIMITER": delimiter}
    for parts in words:
        word = ("@@" + "".join(of.get(part, part) for part in parts)).encode()
        assert words_of_bound.key_of_bound(word) == session.key_of_bound(word), word


@pytest.mark.parametrize("profile", PROFILES)
def test_a_word_with_the_name_has_one(harnesses: dict[str, Harness], profile: str) -> None:
    session, words_of_bound = bound(harnesses[profile], "cache", b".")
    assert session.name_of_bound(b"@@cache.k1") == b"@@cache."
    assert words_of_bound.key_of_bound(b"@@cache.k1") == b"k1"
    assert words_of_bound.key_of_bound(b"@@cache.") is session.key_of_bound(b"@@cache.") is None
    harnesses[profile].shared.directory.generation += 1  # the configuration was read again
    assert words_of_bound.key_of_bound(b"@@cache.k1") is session.key_of_bound(b"@@cache.k1") is None
