"""Which requirements state the reply to a request: those whose statement has both the command and the reply.

A generated conversation names a requirement that combines others; a reader of its failure needs the one of the step.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kvref.specification import requirements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvref.profiles import Profile

# How many are named.
MOST: Final = 6
QUOTED: Final = re.compile(r"`([^`]+)`")
STORES: Final = frozenset({"set", "add", "replace", "append", "prepend", "cas"})
# Requirements that combine others, which a failure names already.
COMBINED: Final = "adds no obligation"


def rules_of(request: str, allowed: Iterable[str], profile: Profile) -> tuple[str, ...]:
    """Return the IDs of requirements that state the reply to a request, in the order of chapters; empty if none does.

    Args:
        request: of the text protocol; its first word is the command.
        allowed: allowed replies, of which the first line counts.
        profile: of the endpoint.
    """
    verb = request.split("\r\n", 1)[0].split(" ", 1)[0]
    replies = {_reply(each) for each in allowed} - {""}
    stating = [
        each
        for each in requirements.load().values()
        if each.applies_to(profile.name) and COMBINED not in each.statement and _states(each.statement, verb, replies)
    ]
    order = requirements.CHAPTERS.index
    return tuple(
        each.id for each in sorted(stating, key=lambda each: (order(each.chapter), len(each.statement)))[:MOST]
    )


def _reply(text: str) -> str:
    """Return what a statement has of a reply: the line of an error, or the first word."""
    line = text.split("\r\n", 1)[0]
    return line if line.startswith(("CLIENT_ERROR", "SERVER_ERROR")) else line.split(" ", 1)[0]


def _states(statement: str, verb: str, replies: set[str]) -> bool:
    quoted = QUOTED.findall(statement)
    commands = {each.split(" ", 1)[0] for each in quoted}
    named = verb in commands or (verb in STORES and re.search(r"[Ss]torage (command|line)", statement) is not None)
    return named and not replies.isdisjoint({*map(_reply, quoted), *quoted})
