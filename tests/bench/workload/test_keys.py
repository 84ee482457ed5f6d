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
    assert key(Keys(9, length=12), 1, seed=7) != key(Keys(9, length=12), 1)


def test_int_keys_begin_at_one() -> None:
    assert list(table_keys(Keys(3, shape="int"))) == [b"1", b"2", b"3"]


def test_draws_depend_on_seed_worker_and_session_alone() -> None:
    keys = Keys(COUNT)
    assert drawn(keys) == drawn(keys)
    others = [drawn(keys, seed=1), drawn(keys, worker=1), drawn(keys, session=1), drawn(keys, first=1)]
    assert all(other != drawn(keys) for other in others)


def test_uniform_draws_every_key_about_as_often() -> None:
    counts = np.bincount(drawn(Keys(COUNT)), minlength=COUNT)
    # Chi square with 999 degrees of freedom: mean 999, deviation 45.
    assert abs(((counts - 100) ** 2 / 100).sum() - 999) < 4 * 45


def test_sequential_walks_on_and_begins_again() -> None:
    assert drawn(Keys(5, distribution="sequential"), amount=7) == [0, 1, 2, 3, 4, 0, 1]
    assert drawn(Keys(100, distribution="sequential"), amount=3, worker=2) == [6, 7, 8]


@pytest.mark.parametrize("theta", [0.5, 0.99, 1.2])
def test_zipf_draws_by_rank(theta: float) -> None:
    counts = Counter(drawn(Keys(COUNT, distribution="zipf", parameters={"theta": theta})))
    weights = np.arange(1, COUNT + 1) ** -theta
    wanted = weights / weights.sum() * AMOUNT
    found = np.array([count for _, count in counts.most_common(10)])
    assert np.all(np.abs(found - wanted[:10]) < 5 * np.sqrt(wanted[:10]))


def test_hot_keys_of_zipf_are_not_adjacent_and_the_same_for_all_workers() -> None:
    keys = Keys(COUNT, distribution="zipf")
    hot = [number for number, _ in Counter(drawn(keys)).most_common(5)]
    assert min(abs(one - other) for one in hot for other in hot if one != other) > 50
    assert {number for number, _ in Counter(drawn(keys, worker=1)).most_common(3)} == set(hot[:3])


def test_scattering_zipf_reaches_every_key() -> None:
    for count in (1, 2, 3, 10, 999, 1000):
        numbers = drawn(Keys(count, distribution="zipf", parameters={"theta": 0.01}))
        assert set(numbers) == set(range(count))


@pytest.mark.parametrize("distribution", ["uniform", "sequential", "zipf"])
def test_a_share_of_the_draws_names_missing_keys(distribution: str) -> None:
    numbers = np.array(drawn(Keys(COUNT, distribution=distribution, missing=0.25)))  # type: ignore[arg-type]
    assert abs((numbers >= COUNT).mean() - 0.25) < 0.01
    assert numbers.max() < 2 * COUNT


def test_own_keys_are_nobody_elses_and_not_in_the_table() -> None:
    keys = Keys(COUNT, distribution="own")
    of_all = [drawn(keys, session=session, amount=50, first=first) for session in range(4) for first in (0, 50)]
    numbers = [number for each in of_all for number in each]
    assert len(set(numbers)) == len(numbers) == 400
    assert set(numbers) == set(range(COUNT, COUNT + 400))


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
