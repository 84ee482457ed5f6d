"""The interpreter of verbs: a command waits for an operation after each step, and ends with a reply."""

from __future__ import annotations

import logging

import pytest

from kvref.engine.operations import Commit, FixSnapshot, LockWaitError, OperationGen, RollBack
from kvref.protocol.replies import Reply, Status
from kvref.server.executors.base import Execution
from kvref.server.scheduler import FAILED


def begin(verb: OperationGen) -> Execution:
    replies: list[Reply] = []
    return Execution(lambda: verb, replies.append)


def test_a_command_waits_for_its_operations_in_turn_and_ends_with_a_reply() -> None:
    def verb() -> OperationGen:
        answer = yield FixSnapshot()
        return Status.OK if (answer, (yield Commit())) == (1, 2) else Status.ERROR

    execution = begin(verb())
    assert execution.start()
    assert isinstance(execution.operation, FixSnapshot)
    assert execution.send(1)
    assert isinstance(execution.operation, Commit)
    assert not execution.send(2)
    assert execution.operation is None
    assert (execution.reply, execution.failed) == (Status.OK, False)


def test_a_command_without_operations_ends_when_it_begins() -> None:
    def verb() -> OperationGen:
        return Status.OK
        yield

    execution = begin(verb())
    assert not execution.start()
    assert execution.reply is Status.OK


def test_a_failure_is_thrown_into_the_verb_which_may_go_on() -> None:
    def verb() -> OperationGen:
        try:
            yield Commit()
        except LockWaitError:
            yield RollBack()
        return Status.NOT_STORED

    execution = begin(verb())
    execution.start()
    assert execution.send(None, LockWaitError())
    assert isinstance(execution.operation, RollBack)
    assert not execution.send(None)
    assert execution.reply is Status.NOT_STORED


@pytest.mark.parametrize("how", ["send", "throw"])
def test_what_no_verb_should_raise_is_logged_and_answered(how: str, caplog: pytest.LogCaptureFixture) -> None:
    def verb() -> OperationGen:
        try:
            yield Commit()
        finally:
            raise KeyError("no such column")

    execution = begin(verb())
    execution.start()
    with caplog.at_level(logging.ERROR):
        assert not (execution.send(None) if how == "send" else execution.send(None, LockWaitError()))
    assert execution.failed
    assert execution.reply is FAILED
    assert "no such column" in caplog.text


def test_a_command_that_begins_anew_closes_what_it_began() -> None:
    closed: list[int] = []

    def verb() -> OperationGen:
        try:
            yield Commit()
        finally:
            closed.append(1)
        return Status.OK

    execution = Execution(verb, lambda _: None)
    execution.start()
    assert execution.start()
    assert closed == [1]
    assert isinstance(execution.operation, Commit)
    assert not execution.send(None)
    assert closed == [1, 1]


def test_a_command_has_no_reply_before_it_ends() -> None:
    def verb() -> OperationGen:
        yield Commit()
        return Status.OK

    execution = begin(verb())
    execution.start()
    with pytest.raises(AttributeError):
        assert execution.reply
