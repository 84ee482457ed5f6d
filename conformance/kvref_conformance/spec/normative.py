"""The normative chapters that are data, as Markdown: one text a chapter, with headings from the second level on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kvref.specification import normative, requirements
from kvref_conformance.spec import replies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


@dataclass(frozen=True, slots=True)
class NormativeChapter:
    """One chapter.

    Args:
        name: of its page.
        title: heading.
        about: its subject in one sentence.
        body: Markdown.
    """

    name: str
    title: str
    about: str
    body: str


def chapters(profile: str = "") -> tuple[NormativeChapter, ...]:
    """Return the chapters in the order of the specification.

    Args:
        profile: name of the only one whose errors and requirements the table of replies has; empty: of all.
    """
    return tuple(
        NormativeChapter(name, title, about, "\n\n".join(body(profile)) + "\n")
        for name, title, about, body in _CHAPTERS
    )


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown; bars in cells are escaped."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def code(text: str) -> str:
    """Return a text as code in Markdown, also one with backquotes."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _grammar(_profile: str) -> Iterator[str]:
    told = normative.table("grammar")
    yield told["text"]["lines"]
    yield f"```text\n{normative.grammar().strip()}\n```"
    yield "## Start rules"
    yield table(("profile", "rule of a line"), [(code(name), code(rule)) for name, rule in told["starts"].items()])
    yield "## Ranges of numbers"
    yield told["text"]["ranges"]
    yield table(("rule", "profiles", "ranges"), _ranges(told["ranges"]))
    yield "## Conditions"
    yield "\n".join(f"* {text}" for text in told["conditions"].values())


def _ranges(ranges: dict[str, dict[str, list[list[int]]]]) -> Iterator[tuple[str, ...]]:
    for rule, by_profile in ranges.items():
        for profile, rows in by_profile.items():
            yield code(rule), "all" if profile == "*" else code(profile), "; ".join(_range(*row) for row in rows)


def _range(low: int, high: int, low_bits_from: int | None = None, low_bits_to: int = 0) -> str:
    bits = "" if low_bits_from is None else f" with low 32 bits from {low_bits_from} to {low_bits_to}"
    return f"{low} to {high}{bits}"


def _binary(_profile: str) -> Iterator[str]:
    told = normative.table("binary")
    yield told["text"]["header"]
    yield "## Header"
    yield table(
        ("offset", "octets", "request", "response"),
        [(str(row["offset"]), str(row["length"]), row["request"], row["response"]) for row in told["header"]],
    )
    yield "## Statuses"
    yield told["text"]["statuses"]
    yield table(
        ("status", "text"),
        [
            (f"0x{row['number']:02x}", code(row["text"]) if row["text"] not in ("", "*") else "")
            for row in told["status"]
        ],
    )
    yield "## Opcodes"
    yield told["text"]["opcodes"]
    yield table(
        ("opcode", "name", "extras (octets)", "key", "value", "quiet", "profiles"), map(_opcode, told["opcode"])
    )


def _opcode(row: dict[str, Any]) -> tuple[str, ...]:
    quiet = "yes" if row["quiet"] else "no"
    profiles = ", ".join(map(code, row["profiles"]))
    return f"0x{row['number']:02x}", row["name"], row["extras"], row["key"], row["value"], quiet, profiles


def _data_model(_profile: str) -> Iterator[str]:
    told = normative.table("data_model")
    text = told["text"]
    yield text["tables"]
    for script in told["scripts"]:
        yield f"## {script['title']}"
        yield f"```sql\n{''.join(map(normative.script, script['files'])).strip()}\n```"
    yield "## Names"
    yield text["names"]
    yield table(
        ("what", "MySQL, MariaDB", "SQLite"), [(row["what"], row["mysql"], row["sqlite"]) for row in told["names"]]
    )
    yield "## Numbers"
    yield text["numbers"]
    yield table(("type", "signed", "UNSIGNED"), [_integer(row) for row in told["numbers"]])
    yield "## Texts"
    yield text["texts"]
    yield table(("type", "width"), [(row["type"], row["width"]) for row in told["texts"]])
    yield "## Collations"
    yield text["collations"]
    yield "## SQLite files"
    yield text["files"]
    yield "## Reload"
    yield text["reload"]


def _integer(row: dict[str, Any]) -> tuple[str, ...]:
    return row["type"], *(f"{row[sign][0]} to {row[sign][1]}" for sign in ("signed", "unsigned"))


def _defaults(_profile: str) -> Iterator[str]:
    told = normative.table("defaults")
    yield "## Options"
    yield told["text"]["options"]
    yield table(("option", "default"), [(code(name), code(value)) for name, value in told["options"].items()])
    yield "## Settings"
    yield told["text"]["settings"]
    yield table(("setting", "default"), [(code(name), str(value)) for name, value in told["settings"].items()])
    yield "## Rows"
    yield told["text"]["rows"]
    yield table(("table", "row"), [(code(name), ", ".join(map(str, row))) for name, row in told["rows"].items()])


def _states(_profile: str) -> Iterator[str]:
    told = normative.table("states")
    yield told["text"]["about"]
    for machine in told["machine"]:
        yield f"## {machine['title']}"
        yield f"{machine['about']} The first state is *{machine['start']}*."
        yield table(
            ("state", "event", "next state", "effect", "case or test"),
            [(*row, ", ".join(map(code, proof))) for *row, proof in machine["transitions"]],
        )
        yield f"```mermaid\n{diagram(machine)}\n```"


def diagram(machine: dict[str, Any]) -> str:
    """Return the diagram of a state machine in Mermaid.

    Args:
        machine: a row of `states.toml`.
    """
    lines = [f"    [*] --> {machine['start']}"]
    for state, event, following, *_ in machine["transitions"]:
        lines.append(f"    {state} --> {following}: {event.replace(':', ',').replace(';', ',').replace('`', '')}")
    return "\n".join(["stateDiagram-v2", *lines])


def _statistics(_profile: str) -> Iterator[str]:
    rows = normative.table("statistics")
    yield "The reply to `stats` has these rows in this order; the rows of a profile are those that name it."
    yield table(
        ("row", "meaning", "profiles"),
        [(code(name), row["means"], ", ".join(map(code, row["profiles"]))) for name, row in rows.items()],
    )


def _replies(profile: str) -> Iterator[str]:
    demanding = {text: _of_profile(names, profile) for text, names in replies.demanding().items()}
    yield normative.table("success")["text"]["about"]
    yield "## Success"
    rows = {text: row for text, row in normative.table("success").items() if text != "text"}
    yield table(("reply", "condition"), [(code(text), row["condition"]) for text, row in rows.items()])
    errors = {text: row for text, row in normative.table("replies").items() if not text.startswith("0x")}
    yield "## Errors"
    yield table(
        ("reply", "condition", "requirements"),
        [
            (code(text), row["cause"], ", ".join(demanding.get(text, ())))
            for text, row in errors.items()
            if not row.get("own") and demanding.get(text, ("",))
        ],
    )
    yield "## Errors whose text is free"
    yield normative.table("success")["text"]["own"]
    yield table(
        ("reply of kvref", "condition"), [(code(text), row["cause"]) for text, row in errors.items() if row.get("own")]
    )


def _of_profile(names: Iterable[str], profile: str) -> tuple[str, ...]:
    known = requirements.load()
    return tuple(name for name in names if not profile or known[name].applies_to(profile))


_CHAPTERS: Final[tuple[tuple[str, str, str, Callable[[str], Iterator[str]]], ...]] = (
    ("data_model", "Data model", "The tables of an endpoint, their types, ranges and names.", _data_model),
    ("defaults", "Defaults", "Options, settings and rows where nothing else is configured.", _defaults),
    ("grammar", "Grammar", "The lines of the text protocol in ABNF, with the ranges of their numbers.", _grammar),
    ("binary", "Binary protocol", "Header, opcodes and statuses of the binary protocol.", _binary),
    (
        "states",
        "States of a connection",
        "Protocol, binding, batch, snapshot and authentication as state machines.",
        _states,
    ),
    ("replies", "Table of replies", "Condition and exact octets of every reply of the text protocol.", _replies),
    ("statistics", "Statistics", "The rows of `stats`.", _statistics),
)
