"""The checker finds planted anomalies, and nothing in a history that has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from consistency.histories import History, Operation, Verdict, check
from helpers.live import missing_skips

pytestmark = pytest.mark.nightly

Step = tuple[int, str, str, str, str, int, int | None]
"""Client, kind, argument, expected value, reply, and when it was called and returned."""

RIGHT: dict[str, list[Step]] = {
    "two at once": [
        (1, "set", "a", "", "STORED", 0, 10), (2, "set", "b", "", "STORED", 0, 10), (3, "get", "", "", "VALUE a", 11, 12),
    ],
    "a write that a reader saw while it ran": [
        (1, "set", "a", "", "STORED", 0, 10), (2, "get", "", "", "VALUE a", 1, 2), (3, "get", "", "", "VALUE a", 3, 4),
    ],
    "a write of unknown outcome that is there": [
        (1, "set", "a", "", "", 0, None), (2, "get", "", "", "END", 5, 6), (2, "get", "", "", "VALUE a", 7, 8),
    ],
    "a write of unknown outcome that is not there": [(1, "set", "a", "", "", 0, None), (2, "get", "", "", "END", 5, 6)],
    "cas": [
        (1, "set", "a", "", "STORED", 0, 1), (1, "cas", "b", "a", "STORED", 2, 3), (2, "cas", "c", "a", "EXISTS", 2, 4),
    ],
    "incr and append": [
        (1, "add", "1", "", "STORED", 0, 1), (1, "incr", "2", "", "3", 2, 3), (1, "append", "4", "", "STORED", 4, 5),
        (1, "get", "", "", "VALUE 34", 6, 7), (1, "delete", "", "", "DELETED", 8, 9), (1, "delete", "", "", "NOT_FOUND", 10, 11),
    ],
}  # fmt: skip
WRONG: dict[str, list[Step]] = {
    "lost write": [(1, "set", "a", "", "STORED", 0, 1), (2, "get", "", "", "END", 2, 3)],
    "stale read": [
        (1, "set", "a", "", "STORED", 0, 1), (1, "set", "b", "", "STORED", 2, 3), (2, "get", "", "", "VALUE a", 4, 5),
    ],
    "aborted read": [(1, "set", "a", "", "", 0, None), (2, "get", "", "", "VALUE a", 1, 2), (2, "get", "", "", "END", 3, 4)],
    "lost update": [
        (1, "set", "a", "", "STORED", 0, 1), (1, "cas", "b", "a", "STORED", 2, 5), (2, "cas", "c", "a", "STORED", 3, 6),
    ],
    "increment carried out twice": [
        (1, "add", "0", "", "STORED", 0, 1), (1, "incr", "1", "", "1", 2, 3), (2, "get", "", "", "VALUE 2", 4, 5),
    ],
    "increment answered to two": [
        (1, "add", "0", "", "STORED", 0, 1), (1, "incr", "1", "", "1", 2, 3), (2, "incr", "1", "", "1", 2, 3),
    ],
    "append lost": [
        (1, "add", "", "", "STORED", 0, 1), (1, "append", "a", "", "STORED", 2, 3), (2, "append", "b", "", "STORED", 4, 5),
        (3, "get", "", "", "VALUE b", 6, 7),
    ],
    "deleted and there": [
        (1, "set", "a", "", "STORED", 0, 1), (1, "delete", "", "", "DELETED", 2, 3), (2, "get", "", "", "VALUE a", 4, 5),
    ],
    "two adds": [(1, "add", "a", "", "STORED", 0, 1), (2, "add", "b", "", "STORED", 2, 3)],
}  # fmt: skip


# Where a plain get need only show what its own connection has written.
RIGHT_OF_A_SESSION: dict[str, list[Step]] = {
    "a write of another connection is missed": [
        (1, "set", "a", "", "STORED", 0, 1), (1, "set", "b", "", "STORED", 2, 3), (2, "get", "", "", "VALUE a", 4, 5),
    ],
    "a write of another connection during the own one": [
        (1, "set", "a", "", "STORED", 0, 10), (2, "set", "b", "", "STORED", 0, 10), (1, "get", "", "", "VALUE b", 11, 12),
        (2, "get", "", "", "VALUE a", 11, 12),
    ],
    "a write of unknown outcome": [
        (1, "add", "0", "", "STORED", 0, 1), (2, "incr", "1", "", "", 2, None), (1, "get", "", "", "VALUE 1", 3, 4),
        (1, "get", "", "", "VALUE 0", 5, 6),
    ],
}  # fmt: skip
WRONG_OF_A_SESSION: dict[str, list[Step]] = {
    "own write missed": [(1, "set", "a", "", "STORED", 0, 1), (1, "get", "", "", "END", 2, 3)],
    "own second write missed": [
        (1, "set", "a", "", "STORED", 0, 1), (1, "set", "b", "", "STORED", 2, 3), (1, "get", "", "", "VALUE a", 4, 5),
    ],
    "own delete missed": [
        (1, "set", "a", "", "STORED", 0, 1), (1, "delete", "", "", "DELETED", 2, 3), (1, "get", "", "", "VALUE a", 4, 5),
    ],
    "own increment missed": [
        (1, "add", "0", "", "STORED", 0, 1), (2, "incr", "1", "", "1", 2, 5), (1, "incr", "1", "", "2", 3, 4),
        (1, "get", "", "", "VALUE 1", 6, 7),
    ],
    "own append missed": [
        (1, "add", "", "", "STORED", 0, 1), (2, "append", ",2.1", "", "STORED", 2, 5), (1, "append", ",1.1", "", "STORED", 3, 4),
        (1, "get", "", "", "VALUE ,2.1", 6, 7),
    ],
    "a value that no command wrote": [(1, "set", "a", "", "STORED", 0, 1), (2, "get", "", "", "VALUE b", 2, 3)],
    "a value that was refused": [
        (1, "set", "a", "", "STORED", 0, 1), (1, "cas", "b", "c", "EXISTS", 2, 3), (2, "get", "", "", "VALUE b", 4, 5),
    ],
    "a value before it was written": [(2, "get", "", "", "VALUE a", 0, 1), (1, "set", "a", "", "STORED", 2, 3)],
    "stale read with gets": [
        (1, "set", "a", "", "STORED", 0, 1), (1, "set", "b", "", "STORED", 2, 3), (2, "gets", "", "", "VALUE a", 4, 5),
    ],
    "lost update": WRONG["lost update"],
}  # fmt: skip


def judged(folder: Path, steps: list[Step], *, session: bool = False) -> Verdict:
    with History(folder / "history.jsonl") as history:
        for client, kind, argument, expected, reply, called, returned in steps:
            history.add(Operation(client, 1, "k", kind, argument, expected, reply, called, returned))
    with missing_skips():
        return check(history.file, session=session)


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_history(tmp_path: Path, name: str) -> None:
    unknown = sum(each[-1] is None for each in RIGHT[name])
    assert judged(tmp_path, RIGHT[name]) == Verdict(1, len(RIGHT[name]), unknown, [], [])


@pytest.mark.parametrize("name", WRONG)
def test_an_anomaly(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, WRONG[name]).wrong == ["k"]
    assert (tmp_path / "history.jsonl.k.html").is_file()


@pytest.mark.parametrize("name", RIGHT_OF_A_SESSION)
def test_a_right_history_of_sessions(tmp_path: Path, name: str) -> None:
    steps = RIGHT_OF_A_SESSION[name]
    unknown = sum(each[-1] is None for each in steps)
    stale = "missed" in name
    assert judged(tmp_path, steps, session=True) == Verdict(1, len(steps), unknown, [], [], int(stale))


@pytest.mark.parametrize("name", WRONG_OF_A_SESSION)
def test_an_anomaly_of_sessions(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, WRONG_OF_A_SESSION[name], session=True).wrong == ["k"]


def test_a_connection_that_begins_anew_may_miss_what_the_previous_one_wrote(tmp_path: Path) -> None:
    with History(tmp_path / "history.jsonl") as history:
        history.add(Operation(1, 1, "k", "set", "a", "", "STORED", 0, 1))
        history.add(Operation(1, 2, "k", "get", "", "", "END", 2, 3))
    with missing_skips():
        assert check(history.file, session=True) == Verdict(1, 2, 0, [], [], 1)
