"""What a person or a program reads of a replay: a differing conversation, the table, the JSON file."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from kvref_conformance.corpus.holes import is_hole
from kvref_conformance.corpus.replay import DIFFERS, LISTED, SAME, UNLISTED
from kvref_conformance.corpus.templates import sent
from kvref_conformance.judging.conversation import shown
from kvref_conformance.steps import AwaitReply, AwaitSql, Crowd, Disconnect, Pause, Restart, Send, innermost

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_conformance.corpus.conversation import Recorded
    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.corpus.replay import Outcome


def conversation_text(outcome: Outcome) -> str:
    """Return a conversation with its steps numbered, what was recorded, and what was observed where that differs."""
    return "\n".join(_lines(outcome))


def _lines(outcome: Outcome) -> Iterator[str]:
    conversation = outcome.script.conversation
    yield f"{outcome.script.citation} ({outcome.version}): {conversation.title}"
    if outcome.row is not None:
        goes = "replays" if outcome.word == UNLISTED else "differs before the end of the server"
        yield f"  it is listed as {outcome.row.cause} and {goes}: {outcome.row.reason}"
    if outcome.failure:
        yield f"  {outcome.failure}"
    found = {each.step: each for each in outcome.differences}
    if not found:
        return
    if 0 in found:
        yield f"     the port: recorded {found[0].recorded}, observed {found[0].observed}"
    for number, step in enumerate(conversation.steps[: max(found)], 1):
        yield f"{number:3}  {_sent(step)}"
        if number in found:
            yield f"       recorded  {answer(found[number].recorded)}"
            yield f"       observed  {answer(found[number].observed)}"
        elif outcome.version in step.got:
            yield f"       < {answer(step.got[outcome.version])}"
    end = found.get(len(conversation.steps) + 1)
    if end is not None:
        yield f"     at the end: recorded {end.recorded}, observed {end.observed}"


def _sent(recorded: Recorded) -> str:
    match innermost(recorded.step):
        case Send() as step:
            return f"{step.on}> {answer(sent(step))}"
        case AwaitReply(on=on):
            return f"{on}> (listen)"
        case Disconnect(on=on, how=how):
            return f"{on}> {how.replace('reset', 'abort')}"
        case AwaitSql(on=on):
            return f"SQL {on}> wait for the result"
        case Crowd() as crowd:
            return f"{crowd.many} connections {crowd.name}> {answer(crowd.send or None)}"
        case Restart(how=how):
            return f"server: {how}"
        case Pause(seconds=seconds):
            return f"wait {seconds:g} s"
        case step:
            return f"SQL {getattr(step, 'on', '')}> {recorded.statement}"


def answer(value: Json) -> str:
    r"""Return an answer as a reader types it: bytes with \r\n and \xNN, holes in braces, rows as JSON."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, list) and all(isinstance(part, str) or is_hole(part) for part in value):
        return "".join(shown(part) if isinstance(part, str) else json.dumps(part) for part in value)
    return json.dumps(value, ensure_ascii=True)


def table(outcomes: Sequence[Outcome]) -> Table:
    """Return the counts by set, group and version."""
    counts: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    for outcome in outcomes:
        key = (outcome.script.citation.partition(":")[0], outcome.script.conversation.group)
        word = DIFFERS if outcome.fails else outcome.word
        counts.setdefault(key, Counter())[outcome.version, word] += 1
    versions = sorted({outcome.version for outcome in outcomes}, reverse=True)
    columns = [(version, word) for version in versions for word in (SAME, LISTED, DIFFERS)]
    drawn = Table(title="conversations by group", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1))
    drawn.add_column("set", no_wrap=True)
    drawn.add_column("group", no_wrap=True)
    for version, word in columns:
        drawn.add_column(f"{version}\n{word}" if word == SAME else f"\n{word}", justify="right", no_wrap=True)
    for (name, group), found in counts.items():
        drawn.add_row(name, group, *(_cell(word, found[version, word]) for version, word in columns))
    drawn.add_section()
    totals = sum(counts.values(), Counter())
    drawn.add_row("all", "", *(_cell(word, totals[version, word]) for version, word in columns), style="bold")
    return drawn


def _cell(word: str, count: int) -> str:
    if not count:
        return "·"
    return f"[red]{count}[/red]" if word == DIFFERS else str(count)


def as_json(outcomes: Sequence[Outcome], idle: Sequence[str]) -> dict[str, Any]:
    """Return a whole replay as JSON: totals, globs of the list that fit nothing, one object for each conversation."""
    return {
        "totals": dict(Counter(outcome.word for outcome in outcomes)),
        "idle_rows": list(idle),
        "conversations": [_outcome_as_json(outcome) for outcome in outcomes],
    }


def _outcome_as_json(outcome: Outcome) -> dict[str, Any]:
    row: dict[str, Any] = {
        "conversation": outcome.script.citation,
        "group": outcome.script.conversation.group,
        "version": outcome.version,
        "outcome": outcome.word,
        "seconds": round(outcome.seconds, 3),
    }
    if outcome.row is not None:
        row |= {"class": outcome.row.cause, "reason": outcome.row.reason}
    if outcome.failure:
        row["failure"] = outcome.failure
    if outcome.differences:
        row["differences"] = [
            {"step": each.step, "recorded": each.recorded, "observed": each.observed} for each in outcome.differences
        ]
    return row


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return one line of counts by version."""
    parts = []
    for version in sorted({outcome.version for outcome in outcomes}, reverse=True):
        totals = Counter(outcome.word for outcome in outcomes if outcome.version == version)
        words = ", ".join(f"{totals[word]} {word}" for word in (SAME, LISTED, DIFFERS, UNLISTED) if totals[word])
        parts.append(f"{version}: {words}")
    return "; ".join(parts)
