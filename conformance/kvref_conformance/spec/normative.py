"""The normative chapters that are data, as Markdown: one text a chapter, with headings from the second level on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kvref.specification import normative

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


def chapters() -> tuple[NormativeChapter, ...]:
    """Return the chapters in the order of the specification."""
    return tuple(
        NormativeChapter(name, title, about, "\n\n".join(body()) + "\n") for name, title, about, body in _CHAPTERS
    )


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown; bars in cells are escaped."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def code(text: str) -> str:
    """Return a text as code in Markdown, also one with backquotes."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _grammar() -> Iterator[str]:
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


def _binary() -> Iterator[str]:
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


_CHAPTERS: Final[tuple[tuple[str, str, str, Callable[[], Iterator[str]]], ...]] = (
    ("grammar", "Grammar", "The lines of the text protocol in ABNF, with the ranges of their numbers.", _grammar),
    ("binary", "Binary protocol", "Header, opcodes and statuses of the binary protocol.", _binary),
)
