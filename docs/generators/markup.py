"""Markdown as MyST reads it: escaped text, tables, anchors, folded parts."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CODE: Final = re.compile(r"(`+)(.+?)\1", re.DOTALL)
# Characters that would start markup; `*` stays, as texts of the project mark emphasis with it.
SPECIAL: Final = re.compile(r"([\\<>\[\]_|{}$~#^])")
REQUIREMENT: Final = re.compile(r"\bKV-[A-Z]+-\d{3}\b")


def prose(text: str) -> str:
    """Return a text of the code as Markdown: code spans stay, other markup is escaped, requirement IDs are links."""
    parts: list[str] = []
    end = 0
    for found in CODE.finditer(text):
        parts += [_plain(text[end : found.start()]), _code(found)]
        end = found.end()
    return "".join([*parts, _plain(text[end:])])


def _code(found: re.Match[str]) -> str:
    return found[0] if not REQUIREMENT.fullmatch(found[2]) else link(found[2])


def _plain(text: str) -> str:
    escaped = SPECIAL.sub(r"\\\1", text)
    return REQUIREMENT.sub(lambda found: link(found[0]), escaped)


def link(requirement: str) -> str:
    """Return a link to a requirement."""
    return f"{{ref}}`{requirement} <{requirement.lower()}>`"


def code(text: object) -> str:
    """Return a text as a code span, whatever backquotes are in it; empty text stays empty."""
    words = str(text)
    if not words:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", words)), default=0))
    padding = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{fence}{padding}{words}{padding}{fence}"


def cell(text: str) -> str:
    """Return Markdown as one cell of a table."""
    return re.sub(r"(?<!\\)\|", r"\\|", text).replace("\n", " ")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table that ends with a line end.

    Args:
        head: titles of the columns.
        rows: cells in Markdown.
    """
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(map(cell, row))} |" for row in rows]
    return "\n".join(lines) + "\n"


def numbers(markdown: str) -> str:
    """Return a table of numbers, whose columns are as narrow as the numbers."""
    return f"::::{{container}} numbers\n{markdown}::::\n"


def bullets(items: Iterable[str]) -> str:
    """Return a list of items in Markdown; further lines of an item are indented."""
    return "\n".join("* " + item.replace("\n", "\n  ") for item in items) + "\n"


def shortened(text: str, most: int = 160) -> str:
    """Return a text on one line, with visible line ends and at most so many characters."""
    shown = text.replace("\r\n", r"\r\n").replace("\n", r"\n")
    return shown if len(shown) <= most else f"{shown[:most]}…"


def indexed(*names: str) -> str:
    """Return a block that lets the search find these names here before any other page."""
    return f"```{{index}} {', '.join(f'! {name}' for name in names)}\n```\n"


def folded(summary: str, html: str) -> str:
    """Return a part of a page that the reader opens.

    Args:
        summary: plain text.
        html: what is inside.
    """
    return f"<details><summary>{escape(summary)}</summary>\n{html}\n</details>\n"


def folded_markdown(summary: str, text: str) -> str:
    """Return a part of a page that the reader opens.

    Args:
        summary: plain text.
        text: Markdown, what is inside.
    """
    return f"<details><summary>{escape(summary)}</summary>\n\n{text.rstrip()}\n\n</details>\n"


def pre(text: str) -> str:
    """Return text as an HTML block with fixed pitch."""
    # An empty line would end the HTML block for a Markdown reader.
    return f"<pre>{escape(text).replace(chr(10) + chr(10), chr(10) + '&#8203;' + chr(10))}</pre>"


def page(title: str, about: str, *parts: str, anchor: str = "") -> str:
    """Return a page that begins with a heading and a paragraph.

    Args:
        title: of the page.
        about: Markdown.
        parts: Markdown, each a block.
        anchor: label for references; none where empty.
    """
    label = f"({anchor})=\n" if anchor else ""
    return "\n\n".join([f"{label}# {title}", about, *(part.rstrip("\n") for part in parts)]) + "\n"
