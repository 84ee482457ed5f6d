"""The output of a run: differences as numbered conversations, files to replay them, counts."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from kvref_conformance.corpus.conversation import Conversation, Recorded, to_json
from kvref_conformance.corpus.holes import cas_number, cas_spans
from kvref_conformance.corpus.templates import sent, without_placeholders
from kvref_conformance.differential.compare import LARGEST_COUNTED, ended, in_words
from kvref_conformance.steps import Disconnect, Send, Sql

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.differential.run import Found, Tally
    from kvref_conformance.steps import Step

MOST_SHOWN = 12


def describe(found: Found, names: tuple[str, str]) -> str:
    """Return a difference as text: the world, the numbered conversation with the answers, what differs.

    Args:
        found: the difference.
        names: of the two sides.
    """
    repeats = "repeats" if found.repeats else "DID NOT REPEAT"
    lines = [f"== {found.difference.kind} (conversation {found.script.number}, {repeats})"]
    lines += [f"   {statement}" for statement in (*found.script.world.set_up(), *found.script.rows)]
    for number, step in enumerate(found.script.steps):
        answers = found.outcome.answers[number] if number < len(found.outcome.answers) else (None, None)
        lines.append(f"{number + 1:3}. {_shown(step)}")
        text = partial(_text, binary=isinstance(step, Send) and step.binary)
        if answers[0] == answers[1]:
            lines += [f"     = {text(answers[0])}"] if answers[0] is not None else []
        else:
            lines += [f"     {name}: {text(answer or b'')}" for name, answer in zip(names, answers, strict=True)]
    if found.difference.step is None:
        lines.append("afterwards:")
        lines += [
            f"     {name}: {text}"
            for name, text in zip(names, (found.difference.left, found.difference.right), strict=True)
        ]
    return "\n".join(lines)


def _shown(step: Step) -> str:
    if isinstance(step, Disconnect):
        return f"{step.on}> closes"
    if isinstance(step, Send):
        request = step.packets[0] if step.binary else ascii(sent(step))
        return f"{step.on}> {request}{' (in two packets)' if len(step.packets) > 1 or step.cuts else ''}"
    return f"{step.on}> {without_placeholders(step.statement)}" if isinstance(step, Sql) else str(step)


def _text(answer: bytes, *, binary: bool) -> str:
    return in_words(answer) or "''" if binary else ascii(answer.decode("latin-1"))


def save(found: Found, folder: Path, version: str, options: tuple[str, ...] = ()) -> Path:
    """Write a difference as a conversation that `kvref replay` holds again, with the first side's answers.

    Args:
        found: the difference.
        folder: where to; made when missing.
        version: of the first side, under which its answers stand.
        options: of the servers.

    Returns:
        The file.
    """
    steps = tuple(_with_answers(found, version))
    name = f"{re.sub(r'[^a-z]+', '-', found.difference.kind.lower()).strip('-')}-{found.script.number}"
    conversation = Conversation(
        name, "duel", found.difference.kind, steps, options, (*found.script.world.set_up(), *found.script.rows)
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    path.write_text(json.dumps(to_json(conversation), ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _with_answers(found: Found, version: str) -> Iterator[Recorded]:
    numbers: list[int] = []
    for step, (answer, _) in zip(found.script.steps, found.outcome.answers, strict=False):
        if isinstance(step, Send) and answer is not None:
            if not step.binary:
                got = _with_holes(answer.decode("latin-1"), numbers)
            else:
                data, end = ended(answer)
                got = _with_holes(data.hex() + end, numbers, hexadecimal=True)
            yield Recorded(step, {version: got})
        else:
            yield Recorded(step)


def _with_holes(answer: str, numbers: list[int], *, hexadecimal: bool = False) -> Json:
    """Return an answer as a recording has it: cas numbers of the counter are holes, numbered as they come."""
    pieces: list[Json] = []
    done = 0
    for begin, end in cas_spans(answer, hexadecimal=hexadecimal):
        number = cas_number(answer[begin:end], hexadecimal=hexadecimal)
        if not 0 < number < LARGEST_COUNTED:
            continue
        if number not in numbers:
            numbers.append(number)
        pieces += [answer[done:begin], {"cas": numbers.index(number) + 1}]
        done = end
    return [*pieces, answer[done:]] if pieces else answer


def table(tally: Tally) -> Table:
    """Return the counts by kind."""
    shown = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for name in ("", "kind", "conversations", "numbers"):
        shown.add_column(name, justify="right" if name == "conversations" else "left")
    for word, counts in (("differs", tally.kinds), ("did not repeat", tally.unrepeated)):
        for kind, count in counts.most_common():
            numbers = tally.numbers[kind]
            more = " …" if len(numbers) > MOST_SHOWN else ""
            shown.add_row(word, kind, str(count), f"{', '.join(map(str, numbers[:MOST_SHOWN]))}{more}")
    for row, count in tally.known.most_common():
        shown.add_row("known", row, f"{count} answers", "")
    return shown


def as_json(tally: Tally, seed: int, names: tuple[str, str]) -> dict[str, Any]:
    """Return the counts as JSON values."""
    return {
        "sides": list(names),
        "seed": seed,
        "conversations": tally.conversations,
        "steps": tally.steps,
        "worlds": tally.worlds,
        "not_held": tally.not_run,
        "seconds": round(tally.seconds, 1),
        "differences": dict(tally.kinds),
        "did_not_repeat": dict(tally.unrepeated),
        "known": dict(tally.known),
        "numbers": tally.numbers,
    }
