"""Make a failing plan smaller: take out commands, clients and faults as long as the world still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from kvref_testbed.simulation.plan import Conversation, Path, Plan


def shrink(plan: Plan, fails: Callable[[Plan], bool], tries: int = 2000) -> Plan:
    """Return a smaller plan that fails, from which no single part can be taken.

    Args:
        plan: one that fails.
        fails: whether a plan fails.
        tries: worlds to run at most.
    """
    smaller = True
    while smaller:
        smaller = False
        for each in _simpler(plan):
            tries -= 1
            if tries < 0:
                return plan
            if fails(each):
                plan, smaller = each, True
                break
    return plan


def _simpler(plan: Plan) -> Iterator[Plan]:
    """Yield plans with one thing less, large parts first."""
    talks = plan.conversations
    if len(talks) > 1:
        yield from (replace(plan, conversations=talks[:at] + talks[at + 1 :]) for at in range(len(talks)))
    for at, talk in enumerate(talks):
        for other in _shorter(talk):
            yield replace(plan, conversations=(*talks[:at], other, *talks[at + 1 :]))
    nothing: dict[str, object] = {"failed_syncs": (), "failed_commits": (), "writers": (), "failures": ()}
    nothing |= {"crash": None, "stop": None, "hurried": False, "cpu": 0.0}
    for name, value in nothing.items():
        if getattr(plan, name) != value:
            yield replace(plan, **{name: value})  # type: ignore[arg-type]  # each has its type
    for each in plan.failures:
        yield replace(plan, failures=tuple(other for other in plan.failures if other is not each))
    for name in plan.settings:
        yield replace(plan, settings={other: value for other, value in plan.settings.items() if other != name})
    if len(plan.syncs) > 1:
        yield replace(plan, syncs=plan.syncs[:1])
    for at, talk in enumerate(talks):
        for other in _plainer(talk):
            yield replace(plan, conversations=(*talks[:at], other, *talks[at + 1 :]))


def _shorter(talk: Conversation) -> Iterator[Conversation]:
    """Yield a conversation with fewer commands."""
    commands = talk.commands
    size = len(commands) // 2
    while size:
        for at in range(0, len(commands), size):
            left = commands[:at] + commands[at + size :]
            if left:
                yield replace(talk, commands=left)
        size //= 2


def _plainer(talk: Conversation) -> Iterator[Conversation]:
    """Yield a conversation with less of the network's doing."""
    if talk.path != Path():
        yield replace(talk, path=Path())
    if talk.reset_after is not None:
        yield replace(talk, reset_after=None)
    if talk.end != "stay":
        yield replace(talk, end="stay")
    if any(each.cuts for each in talk.commands):
        yield replace(talk, commands=tuple(replace(each, cuts=()) for each in talk.commands))
    for at, each in enumerate(talk.commands):
        for other in (replace(each, noreply=False), replace(each, exptime=0), replace(each, gap=0.0)):
            if other != each:
                yield replace(talk, commands=(*talk.commands[:at], other, *talk.commands[at + 1 :]))
