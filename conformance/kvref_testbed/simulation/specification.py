"""What the replies of a world have to be: per key, those of one command after the other, with what a crash may take.

With one command a transaction, all replies of a world and the rows after a crash are one history: what a reply has
said or shown is durable. With batches, replies before a crash and rows after it are two histories, since an open
batch is lost with the machine: it is known to be committed once it is full, or idle for long enough.

`order.py` searches for an order of a history in which each reply is right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kvref_testbed.simulation.clients import Operation
from kvref_testbed.simulation.loop import EPOCH
from kvref_testbed.simulation.order import Fate, Step, longest_order
from kvref_testbed.simulation.plan import KEYS, READS, STORAGE, Plan

_NUMBER: Final = re.compile(rb"\d+")
_TWO_64: Final = 1 << 64
_LOCK_WAIT: Final = b"lock wait timeout"
_DEADLOCK: Final = re.compile(rb"SERVER_ERROR deadlock(?:: (\d+) pending writes are lost)?")
_PATIENCES: Final = 2.1  # with a wait for a lock, a statement that hangs, and time for others
_START: Final = 1000.0  # `Clock.now` at the start


@dataclass(frozen=True, slots=True)
class Row:
    """A row.

    Args:
        value: its value.
        flags: its flags.
        number: its cas number, once it was shown.
        expires: the earliest and the latest second in which it expires; None: it does not.
    """

    value: bytes
    flags: int
    number: int | None = None
    expires: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class State:
    """The state of a key."""

    row: Row | None = None


_MISSING: Final = State()


def _seconds(operation: Operation, end: float) -> tuple[int, int]:
    """Return the earliest and the latest second of the wall clock in which a command was carried out."""
    returned = end if operation.returned is None else operation.returned
    return int(operation.called - _START + EPOCH), int(returned - _START + EPOCH)


class KeySpecification:
    """One key, whose commands are carried out one after the other.

    Args:
        key: its name.
        end: when the world ended.
        numbered: gets are part of the history; else a cas that was carried out had the right number.
    """

    def __init__(self, key: str, end: float, *, numbered: bool = True) -> None:
        self._key = key
        self._end = end
        self._numbered = numbered

    def step(self, state: State, operation: Operation) -> list[State]:
        """Return the states that a command may leave; none if its reply is wrong in that state."""
        verb = operation.command.verb
        after = []
        for row in self._rows(state.row, operation):
            if verb in READS:
                found = self._get(row, operation)
                after += [] if found is None else [found]
                continue
            if verb == "cas" and row is not None and not self._numbered and operation.reply is None:
                after.append(State(row))  # it may have had another number
            reply, written = self._effect(row, operation)
            if operation.reply is None or operation.refused or operation.reply == reply:
                after.append(State(written))
        return after

    def _rows(self, row: Row | None, operation: Operation) -> list[Row | None]:
        """Return the row that a command finds, None if it is expired; both in the seconds in which it may be either."""
        if row is None or row.expires is None:
            return [row]
        first, last = _seconds(operation, self._end)
        low, high = row.expires
        return ([row] if first <= high else []) + ([None] if last >= low else [])

    def _get(self, row: Row | None, operation: Operation) -> State | None:
        if operation.reply is None or operation.refused:
            return State(row)
        assert operation.items is not None
        item = operation.items.get(self._key)
        if item is None or row is None:
            return State(row) if item is None and row is None else None
        number = row.number if item.number is None else item.number
        if (item.value, item.flags) != (row.value, row.flags) or row.number not in {None, number}:
            return None
        if (item.number is not None) != (operation.command.verb == "gets"):
            return None
        return State(replace(row, number=number))

    def _effect(self, row: Row | None, operation: Operation) -> tuple[bytes, Row | None]:
        """Return the right reply to a write, and the row after it."""
        command = operation.command
        match command.verb:
            case "flush_all":
                return b"OK", None
            case "delete":
                return (b"NOT_FOUND", None) if row is None else (b"DELETED", None)
            case "touch":
                return (b"NOT_FOUND", None) if row is None else (b"TOUCHED", self._touched(row, operation))
            case "incr" | "decr":
                return self._counted(row, operation)
            case "cas" if row is None:
                return b"NOT_FOUND", None
            case "cas" if row is not None and self._numbered and row.number != operation.number:
                return b"EXISTS", row
            case "add" if row is not None:
                return b"NOT_STORED", row
            case "replace" | "append" | "prepend" if row is None:
                return b"NOT_STORED", None
        value = command.value.encode()
        if row is not None and command.verb == "append":
            return b"STORED", replace(row, value=row.value + value, number=None)
        if row is not None and command.verb == "prepend":
            return b"STORED", replace(row, value=value + row.value, number=None)
        assert command.verb in STORAGE
        return b"STORED", Row(value, command.number, None, self._expiry(operation))

    def _touched(self, row: Row, operation: Operation) -> Row:
        return replace(row, expires=self._expiry(operation))

    def _expiry(self, operation: Operation) -> tuple[int, int] | None:
        seconds = operation.command.exptime
        if not seconds:
            return None
        first, last = _seconds(operation, self._end)
        # The row is there until some time in the second that its expiry names, or the one after it.
        return first + seconds - 1, last + seconds + 1

    @staticmethod
    def _counted(row: Row | None, operation: Operation) -> tuple[bytes, Row | None]:
        if row is None:
            return b"NOT_FOUND", None
        if _NUMBER.fullmatch(row.value) is None or int(row.value) >= _TWO_64:
            return b"CLIENT_ERROR cannot increment or decrement non-numeric value", row
        amount = operation.command.number
        number = int(row.value)
        new = (number + amount) % _TWO_64 if operation.command.verb == "incr" else max(0, number - amount)
        return b"%d" % new, replace(row, value=b"%d" % new, number=None)


def judge(
    plan: Plan, operations: Sequence[Operation], after: Sequence[Operation], end: float, *, faults: bool
) -> list[str]:
    """Return what is wrong with a history.

    Args:
        plan: of its world, with all settings that were in force.
        operations: of the clients.
        after: gets of all keys from the server that has started again.
        end: loop time at which the first server ended.
        faults: the disk has failed.

    Raises:
        UndecidedError: the search takes too long.
    """
    wrong = _needless_waits(plan, operations) if plan.batches and not (plan.writers or plan.failures) else []
    if not plan.may_refuse:
        wrong += [
            f"client {each.client}: {each.command} is refused: {each.reply!r}" for each in operations if each.refused
        ]
    if plan.store == "mysql" and not (plan.batches or plan.slow):
        wrong += _late(plan, operations)
    # A deadlock takes a batch back, and a client that is cut off does not receive the error.
    unsure = any(each.refused or (each.returned is None and each.command.verb not in READS) for each in operations)
    known = not faults and (not unsure or len(plan.conversations) == 1)
    committed = _committed(plan, operations, end, faults=faults) if plan.batches else set()
    lost = set() if faults else _lost(operations)
    for key in KEYS:
        of_key = [each for each in operations if key in each.command.key.split() or each.command.verb == "flush_all"]
        commands = _steps(of_key, faults=faults, crash=plan.crash is not None)
        last = [Step(each, -2) for each in after if key in each.command.key.split()]
        for title, history, numbered in _histories(plan, commands, last, committed, lost, known=known):
            order = longest_order(history, State(), KeySpecification(key, end, numbered=numbered).step)
            if order is not None:
                wrong.append(_description(f"{key}: {title}", history, order))
    return wrong


def _histories(
    plan: Plan, commands: list[Step], after: list[Step], committed: set[Operation], lost: set[Operation], *, known: bool
) -> Iterable[tuple[str, list[Step], bool]]:
    """Yield what has to have an order: what is wrong otherwise, the commands, and whether gets are among them."""
    level = plan.settings["innodb_api_trx_level"]
    dirty_reads = plan.store == "mysql" and level == 0  # they show what is rolled back before it is written again
    if not plan.batches and (dirty_reads or (plan.failed_syncs and plan.crash is not None)):
        # After a failed sync, a reply shows what the file has, which the disk may lack.
        if not dirty_reads:
            yield "no order of these has their replies", commands, True
        yield (
            "no order of these writes leaves these rows",
            [each for each in commands if _wrote(each.operation)] + after,
            False,
        )
        return
    if not plan.batches:
        yield "no order of these has their replies, and leaves these rows", commands + after, True
        return
    if known and level == 0:
        yield "no order of these has their replies", commands, True
    writes = [
        each if each.operation in committed else replace(each, fate=Fate.UNKNOWN)
        for each in commands
        if _wrote(each.operation) and each.operation not in lost
    ]
    yield "no order of these writes leaves these rows", writes + after, False


def _steps(operations: Sequence[Operation], *, faults: bool, crash: bool) -> list[Step]:
    """Return a history, without gets that have no answer."""
    answered = {each.client: number for number, each in enumerate(operations) if each.returned is not None}
    steps = []
    for number, each in enumerate(operations):
        if each.command.verb in READS and (each.returned is None or each.refused):
            continue
        if each.refused:
            fate = Fate.UNKNOWN
        elif each.returned is not None:
            fate = Fate.DONE
        elif faults:
            fate = Fate.UNKNOWN
        elif each.command.noreply and number < answered.get(each.client, -1):
            # It is carried out when a later one of its client is answered; what no reply has confirmed may be lost.
            fate = Fate.UNKNOWN if crash else Fate.DONE
        else:
            fate = Fate.LAST
        steps.append(Step(each, each.client, fate))
    return steps


def _wrote(operation: Operation) -> bool:
    """Return whether a command has, or may have, written."""
    verb, reply = operation.command.verb, operation.reply
    if verb in READS:
        return False
    return reply is None or operation.refused or reply in {b"STORED", b"DELETED", b"TOUCHED", b"OK"} or reply.isdigit()


def _committed(plan: Plan, operations: Sequence[Operation], end: float, *, faults: bool) -> set[Operation]:
    """Return the acknowledged writes that are known to be committed before the end.

    A batch that is idle for the interval of the background commit may be committed, and the writes after it are
    another batch then; whether the disk has it is known later, with those. Why the commit of an idle batch has failed
    is the next reply: where the disk fails, there may be none.
    """
    size = plan.settings["daemon_memcached_w_batch_size"]
    idle = _idle(plan) + 2 * sum(map(sum, plan.syncs)) + sum(each.seconds for each in plan.writers)
    committed: set[Operation] = set()
    for client in {each.client for each in operations}:
        own = [each for each in operations if each.client == client]
        batch: list[Operation] = []  # acknowledged since it is not known to be committed or lost
        before: list[Operation] = []  # the same, and maybe of a batch before that one
        for number, each in enumerate(own):
            last = own[number - 1].returned if number else None
            if last is not None and each.called - last >= plan.settings["innodb_api_bk_commit_interval"]:
                before += batch
                batch.clear()
            if each.refused:
                batch.clear()
                before.clear()
            if each.refused or each.returned is None or not _wrote(each):
                continue
            batch.append(each)
            later = own[number + 1].called if number + 1 < len(own) else end
            if later - each.returned > idle and not faults:
                committed.update(before, batch)
                before.clear()
                batch.clear()
            elif len(batch) == size:
                # One of them was the last of a full batch: at least the first is committed.
                committed.update(before, [batch.pop(0)])
                before.clear()
    return committed


def _late(plan: Plan, operations: Sequence[Operation]) -> list[str]:
    """Return commands that have waited for a database server longer than for a row lock and one statement that hangs.

    A command waits from when it is sent, or the one before it of its client is answered.
    """
    wrong, before = [], dict.fromkeys((each.client for each in operations), 0.0)
    for each in operations:
        if each.returned is not None:
            waited = each.returned - max(each.called, before[each.client])
            before[each.client] = each.returned
            if waited > _PATIENCES * plan.patience:
                wrong.append(f"client {each.client}: {each.command} is answered after {waited:.3f} s")
    return wrong


def _lost(operations: Sequence[Operation]) -> set[Operation]:
    """Return the writes that deadlocks have taken back: each reply says how many, the latest of its client."""
    lost = set()
    for number, each in enumerate(operations):
        if found := _DEADLOCK.match(each.reply or b""):
            counted = [one for one in operations[:number] if one.client == each.client and _wrote(one)]
            lost.update([each, *counted[len(counted) - int(found[1] or 0) :]])
    return lost


def _needless_waits(plan: Plan, operations: Sequence[Operation]) -> list[str]:
    """Return commands whose wait for a lock timed out although no other client can have had one by then.

    The batch of a client that is idle, or has disconnected, is committed, and a deadlock takes back that of its loser.
    """
    wrong = []
    for waited in operations:
        if waited.returned is None or _LOCK_WAIT not in (waited.reply or b""):
            continue
        over = waited.called + plan.settings["innodb_lock_wait_timeout"]
        active = over - _idle(plan)
        holds = dict.fromkeys((each.client for each in operations if each.client != waited.client), False)
        for each in operations:
            if each.client in holds and each.called <= waited.returned:
                returned = math.inf if each.returned is None else each.returned
                lost = _DEADLOCK.match(each.reply or b"") is not None and returned < over
                holds[each.client] = not lost and (holds[each.client] or returned >= active)
        if not any(holds.values()):
            wrong.append(f"client {waited.client}: {waited.command} waits for a lock that no client has")
    return wrong


def _idle(plan: Plan) -> float:
    """Return after how many seconds without a command a batch is committed, without the time of the disk."""
    return plan.settings["innodb_api_bk_commit_interval"] + 1.5 + 10 * max(plan.statements, default=0.0)


def _description(title: str, history: Sequence[Step], order: Sequence[Step]) -> str:
    """Write a history for a reader: times in milliseconds, and a mark for those that are in no order."""
    ordered = {id(each.operation) for each in order}
    lines = [title]
    for each in sorted(history, key=lambda each: each.operation.called):
        operation = each.operation
        command = operation.command
        words = [command.verb, command.key, command.value[-20:], str(command.number)]
        words += [f"exptime={command.exptime}"] * bool(command.exptime)
        words += [f"cas={operation.number}"] * bool(operation.number)
        reply = "?" if operation.reply is None else operation.reply.decode()
        items = (operation.items or {}).items()
        shown = " ".join(f"{key}={item.value[-20:].decode()} ({item.number})" for key, item in items)
        returned = "?" if operation.returned is None else f"{(operation.returned - _START) * 1000:.3f}"
        mark = " " if id(operation) in ordered else "!"
        lines.append(
            f"{mark} {(operation.called - _START) * 1000:10.3f} to {returned:>10} ms  client {operation.client}:"
            f" {' '.join(filter(None, words))} -> {reply}{shown} [{each.fate.name.lower()}]"
        )
    return "\n".join(lines)
