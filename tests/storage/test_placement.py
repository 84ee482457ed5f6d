"""Which shard has a key."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest

from kvref.engine.mapping import Column, Kind, Mapping
from kvref.errors import ConfigError
from kvref.storage.several import key_bytes, refuse_shards, shard_of

NAMES = ("one", "two", "three")
KEYS = [b"key:%d" % number for number in range(3000)]


def store_of(names: tuple[str, ...], key: bytes) -> str:
    return names[shard_of(names, key)]


def test_a_key_is_in_the_same_shard_in_every_process_and_version() -> None:
    """Another hash, or another use of it, would lose the rows of existing shards."""
    found = [store_of(NAMES, key) for key in (b"", b"a", b"b", b"c", b"user:1", b"user:2", b"\xff\x00")]
    assert found == ["one", "three", "three", "one", "three", "two", "three"]


def test_the_order_of_the_shards_does_not_matter() -> None:
    for key in KEYS[:200]:
        assert len({store_of(names, key) for names in permutations(NAMES)}) == 1


@pytest.mark.parametrize("names", [("one", "two"), NAMES, tuple(f"shard{n}" for n in range(9))])
def test_a_new_shard_takes_its_part_of_the_keys_and_no_other_key_moves(names: tuple[str, ...]) -> None:
    longer = (*names, "new")
    before, after = ([store_of(each, key) for key in KEYS] for each in (names, longer))
    moved = [new for old, new in zip(before, after, strict=True) if old != new]
    assert set(moved) == {"new"}
    part = len(KEYS) / len(longer)
    assert all(abs(count - part) < 0.15 * part + 30 for count in Counter(after).values()), Counter(after)


def mapping(kind: Kind, collation: str = "", **more: object) -> Mapping:
    column = Column("k", kind, 30, collation=collation)
    value = Column("v", Kind.TEXT, 100)
    return Mapping("m", "s", "t", "t", column, (value,), None, more.pop("cas", None), None, **more)  # type: ignore[arg-type]


def test_equal_keys_have_equal_bytes() -> None:
    assert key_bytes(mapping(Kind.INTEGER), 7) == b"7"
    assert key_bytes(mapping(Kind.TEXT, "utf8mb4_bin"), "ä  ") == "ä".encode()
    assert key_bytes(mapping(Kind.BYTES), b"a \xff ") == b"a \xff "


@pytest.mark.parametrize(
    "kind", [(Kind.INTEGER, ""), (Kind.BYTES, ""), (Kind.TEXT, "latin1_bin"), (Kind.TEXT, "BINARY")]
)
def test_keys_that_are_compared_as_bytes_can_be_sharded(kind: tuple[Kind, str]) -> None:
    refuse_shards(("one", "two"), [mapping(*kind), mapping(*kind)])


@pytest.mark.parametrize(
    ("mappings", "text"),
    [
        ([mapping(Kind.TEXT, "utf8mb4_0900_ai_ci")] * 2, "to the collation utf8mb4_0900_ai_ci of its key k, keys with different bytes can be equal"),
        ([mapping(Kind.TEXT, "nocase")] * 2, "to the collation nocase of its key k"),
        ([mapping(Kind.TEXT, "utf8mb4_bin", beginning=3)] * 2, "only a prefix of its key k is indexed"),
        ([mapping(Kind.BYTES), mapping(Kind.INTEGER)], "store two maps other columns than store one"),
        ([mapping(Kind.BYTES), mapping(Kind.BYTES, cas=Column("c", Kind.INTEGER))], "store two maps other columns"),
    ],
)  # fmt: skip
def test_others_are_refused(mappings: list[Mapping], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        refuse_shards(("one", "two"), mappings)
