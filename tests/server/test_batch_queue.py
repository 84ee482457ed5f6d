"""The queue of commands for common statements."""

from __future__ import annotations

from kvref.server.executors.mysql.batch_queue import BatchQueue


def test_a_batch_is_no_heavier_than_its_width() -> None:
    queue: BatchQueue[str, str] = BatchQueue()
    for command, weight in (("a", 1), ("b", 3), ("c", 1), ("d", 2), ("e", 9), ("f", 1)):
        queue.add("table", command, weight)
    taken = []
    while queue:
        taken.append(queue.take(lambda _: 4)[1])
    assert taken == [["a", "b"], ["c", "d"], ["e"], ["f"]]


def test_kinds_take_turns_in_the_order_in_which_they_came() -> None:
    queue: BatchQueue[str, int] = BatchQueue()
    for number in range(6):
        queue.add("ab"[number % 2], number)
    assert [queue.take(lambda _: 2) for _ in range(4)] == [("a", [0, 2]), ("b", [1, 3]), ("a", [4]), ("b", [5])]
    assert not queue
