"""Keys: names of numbers, and how often each number is drawn. Seeds are fixed, so that a bound holds or does not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from kvref_bench.errors import BenchError
from kvref_bench.load.work import Keys, Values, Work
from kvref_bench.workload.keys import LIMIT, draws, key, table_keys

COUNT = 1_000
AMOUNT = 100_000


def drawn(
    keys: Keys,
    *,
    seed: int = 0,
    worker: int = 0,
    session: int = 0,
    amount: int = AMOUNT,
    first: int = 0,
    sessions: int = 4,
) -> list[int]:
    work = Work(keys, Values(), {"get": 1}, sessions=sessions, seed=seed)
    return draws(keys, work, worker, session, amount, first).tolist()


@pytest.mark.parametrize("length", [8, 9, 10, 32, 100, 250])
def test_text_keys_have_their_length_and_differ(length: int) -> None:
    keys = Keys(COUNT, length=length)
    numbers = [*range(20_000), *range(LIMIT - 1_000, LIMIT)]
    names = {key(keys, number) for number in numbers}
    assert len(names) == len(numbers)
    assert {len(name) for name in names} == {length}
    assert all(name.isalnum() and name == name.lower() for name in names)


def test_names_stay_what_they_are() -> None:
    """A table that was loaded by another version of this file serves the next run."""
    assert [key(Keys(9, length=12), number) for number in (0, 1, 999_999)] == [
        b"000000000867",
        b"qhx39vv065fe",
        b"r3lebjau125e",
    ]


def test_int_keys_begin_at_one() -> None:
    assert list(table_keys(Keys(3, shape="int"))) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("theta", [0.5, 0.99, 1.2])
def test_zipf_draws_by_rank(theta: float) -> None:
    counts = Counter(drawn(Keys(COUNT, distribution="zipf", parameters={"theta": theta})))
    weights = np.arange(1, COUNT + 1) ** -theta
    wanted = weights / weights.sum() * AMOUNT
    found = np.array([count for _, count in counts.most_common(10)])
    assert np.all(np.abs(found - wanted[:10]) < 5 * np.sqrt(wanted[:10]))


@pytest.mark.parametrize("distribution", ["uniform", "sequential", "zipf"])
def test_a_share_of_the_draws_names_missing_keys(distribution: str) -> None:
    numbers = np.array(drawn(Keys(COUNT, distribution=distribution, missing=0.25)))  # type: ignore[arg-type]
    assert abs((numbers >= COUNT).mean() - 0.25) < 0.01
    assert numbers.max() < 2 * COUNT


@pytest.mark.parametrize("distribution", ["uniform", "sequential", "zipf"])
def test_sessions_apart_share_no_key_and_leave_none_out(distribution: str) -> None:
    keys = Keys(10, distribution=distribution, missing=0.3, apart=True)  # type: ignore[arg-type]
    of_each = [set(drawn(keys, session=session, amount=5_000)) for session in range(4)]
    assert sum(map(len, of_each)) == len(set.union(*of_each))
    assert set.union(*of_each) >= set(range(10))
    assert [sorted(number for number in mine if number < 10) for mine in of_each] == [
        [0, 4, 8],
        [1, 5, 9],
        [2, 6],
        [3, 7],
    ]
    there = [number < 10 for session in range(4) for number in drawn(keys, session=session, amount=5_000)]
    assert abs(sum(there) / len(there) - 0.7) < 0.02


def test_a_file_is_drawn_in_order(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    path.write_bytes(b"alpha\nbeta\nalpha\ngamma\n")
    keys = Keys(4, distribution="file", file=str(path))
    assert [key(keys, number) for number in drawn(keys, amount=5)] == [b"alpha", b"beta", b"alpha", b"gamma", b"alpha"]
    assert list(table_keys(keys)) == [b"alpha", b"beta", b"gamma"]
    assert key(keys, 5) not in path.read_bytes().splitlines()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        (b"", "empty"),
        (b"good\ntwo words\n", "line 2: b'two words'"),
        (b"\n", "line 1"),
        (b"k" * 251, "1 to 250 bytes"),
    ],
)
def test_a_file_that_is_none_says_what_is_wrong(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "keys.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BenchError, match=words):
        key(Keys(1, distribution="file", file=str(path)), 0)
