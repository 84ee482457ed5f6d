"""Plain commands that travel together: gets by one SELECT, sets by one transaction, each in one call of a thread.

Where anything is odd the commands take the general path, and meet it there one by one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kvref.engine.operations import Row
from kvref.server.own_link import OwnLink
from kvref.server.plain_ways import PlainRead, PlainWrite, answer_reads
from kvref.storage.mysql.connection import Link
from kvref.storage.mysql.fast_path import PlainTable

if TYPE_CHECKING:
    from kvref.server.coalescing_driver import CoalescingDriver


async def read_plain(driver: CoalescingDriver, table: PlainTable, reads: list[PlainRead]) -> None:
    """Reply to gets, or let them take the general path.

    Args:
        driver: looks up.
        table: whose rows.
        reads: at least one.
    """
    if not table.version.live:
        _give_up(reads)  # it was altered
        return
    words = list(dict.fromkeys([each.word for each in reads]))
    try:
        found, certain = await driver.look_up_plain(table, words)
    except Exception as error:  # noqa: BLE001 - whatever it is, the command that it belongs to meets it again
        driver.give_up(table.mapping, reads, error)
        return
    answer_reads(reads, table, found, certain=certain, now=int(time.time()))


async def write_plain(
    driver: CoalescingDriver, link: OwnLink, table: PlainTable, writes: list[PlainWrite]
) -> list[PlainWrite]:
    """Carry out sets in one transaction and reply, or let them take the general path.

    Args:
        driver: takes back what fails.
        link: for the transaction.
        table: whose rows.
        writes: at least one.

    Returns:
        Those for whom there was no room.
    """
    if not table.version.live:
        _give_up(writes)  # it was altered
        return []
    # How long a statement may be is not known before the first one.
    room = (link.longest or 0) - sum([each.size for each in writes])
    left_over: list[PlainWrite] = []
    while room < 0 and len(writes) > 1:
        left_over.append(writes.pop())
        room += left_over[-1].size
    first: dict[bytes, PlainWrite] = {}
    # Of one row each is written by itself, as triggers see it; words that only the server takes for one it refuses.
    again = [each for each in writes if first.setdefault(each.word, each) is not each]
    taken = list(first.values())
    try:
        written, reason = await link.call(_write, table, {each.word: each.row() for each in taken})
    except Exception as error:  # noqa: BLE001 - as above
        driver.give_up(table.mapping, [*taken, *again, *left_over], error)
        return []
    for each in taken:
        if each.word in written:
            each.answer(reason)
        else:
            each.give_up()
    _give_up(again)
    return left_over[::-1]


def _give_up(commands: list[Any]) -> None:
    for each in commands:
        each.give_up()


def _write(link: Link, table: PlainTable, rows: dict[bytes, Row]) -> tuple[set[bytes | None], str | None]:
    return table.write(link, rows)
