"""Find words that a reader would have to decode, as .ci/prose.toml lists them.

What a person sees when using kvref (help, settings, metrics, texts in the code) has none of them. Documents, docstrings
and comments still have some: prose.toml counts them, and a count can only fall.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import click

from kvref.cli import main

ROOT: Final = Path(__file__).resolve().parent.parent
FILE: Final = ROOT / ".ci" / "prose.toml"
PACKAGES: Final = ("kvref", "kvref_testbed", "conformance", "bench")
FOLDERS: Final = (*PACKAGES, "docs", "tests")
INTERNAL: Final = "docstrings and comments"
# Charts and tables of the notebooks, whose committed output changes with them.
CHARTS: Final = "bench/kvref_bench/analysis"
# Scripts for the containers of other languages, pages generated from recordings, and what git ignores of the site.
_FOREIGN: Final = (
    "conformance/kvref_conformance/interop/scripts",
    "conformance/standing",
    *(line for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines() if line.startswith("docs/")),
)


@dataclass(frozen=True)
class Text:
    """Words that a person reads.

    Args:
        where: the command and option, or the file.
        line: number of the first line, 0 if there are no lines.
        text: one or several lines.
    """

    where: str
    line: int
    text: str


@dataclass(frozen=True)
class Phrase:
    """Words to avoid.

    Args:
        pattern: finds them.
        write: plain terms to write instead.
    """

    pattern: re.Pattern[str]
    write: str


@dataclass(frozen=True)
class Found:
    """A phrase that was found, with its place and its line."""

    where: str
    line: int
    words: str
    write: str
    text: str

    def __str__(self) -> str:
        place = f"{self.where}:{self.line}" if self.line else self.where
        return f"{place}: {self.words!r}: write {self.write}: {self.text.strip()[:100]}"


@cache
def _vocabulary() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def phrases() -> list[Phrase]:
    """Return the phrases of prose.toml."""
    rows = _vocabulary()["phrase"]
    return [Phrase(re.compile(rf"\b(?:{row['match']})\b", re.IGNORECASE), row["write"]) for row in rows]


def remaining() -> dict[str, int]:
    """Return how many phrases a document, a folder, or all docstrings and comments can still have."""
    return dict(_vocabulary().get("remaining", {}))


def found(texts: Iterable[Text]) -> Iterator[Found]:
    """Yield each phrase in some texts; code in backticks and addresses are skipped."""
    banned = phrases()
    for each in texts:
        for number, line in enumerate(each.text.splitlines()):
            prose = re.sub(r"`[^`]*`|https?://\S+", "`", line)
            for phrase in banned:
                for match in phrase.pattern.finditer(prose):
                    yield Found(each.where, each.line + number if each.line else 0, match[0], phrase.write, line)


def visible() -> Iterator[Text]:
    """Yield what the program shows a person: help, and every text of several words in the code."""
    yield from _commands(main, "kvref")
    kept = [row["text"] for row in _vocabulary()["kept"]]
    for path in _sources(PACKAGES):
        for node in _strings(path):
            if " " in node.value.strip() and not any(text in node.value for text in kept):
                yield Text(_name(path), node.lineno, node.value)


def documents() -> Iterator[Text]:
    """Yield the Markdown files of the repository without their code blocks."""
    files = [*ROOT.glob("*.md"), *ROOT.glob(".github/**/*.md")]
    files += [path for folder in (*PACKAGES, "docs") for path in (ROOT / folder).rglob("*.md")]
    for path in sorted(files):
        if not _name(path).startswith(_FOREIGN):
            text = path.read_text(encoding="utf-8")
            blocks = re.compile(r"^ *(```+).*?^ *\1", re.DOTALL | re.MULTILINE)
            yield Text(_name(path), 1, blocks.sub(lambda block: "\n" * block[0].count("\n"), text))


def internal(folders: Iterable[str] = FOLDERS) -> Iterator[Text]:
    """Yield the docstrings and comments of the Python files in some folders."""
    for path in _sources(folders):
        with tokenize.open(path) as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type == tokenize.COMMENT:
                    yield Text(_name(path), token.start[0], token.string)
        for node in _docstrings(_tree(path)):
            yield Text(_name(path), node.lineno, "\n".join(map(_without_code, node.value.splitlines())))


def today() -> Counter[str]:
    """Return how many phrases each document, the charts, and all docstrings and comments have."""
    counts = Counter(each.where for each in found(documents()))
    counts[CHARTS] = sum(each.where.startswith(CHARTS) for each in found(visible()))
    counts[INTERNAL] = sum(1 for _ in found(internal()))
    return counts


def problems() -> list[str]:
    """Return a line for each phrase in visible texts, and for each count that has risen; empty if there is none."""
    lines = [str(each) for each in found(visible()) if not each.where.startswith(CHARTS)]
    documented = list(found(documents()))
    for where, count in today().items():
        if count > (allowed := remaining().get(where, 0)):
            lines += [str(each) for each in documented if each.where == where]
            lines.append(
                f"{where}: {count} phrases to avoid, allowed are {allowed}: `.ci/prose --internal` lists those in code"
            )
    return lines


def update() -> None:
    """Lower the counts in prose.toml to those of today."""
    before = remaining()
    counts = {where: min(count, before.get(where, count)) for where, count in sorted(today().items()) if count}
    text = FILE.read_text(encoding="utf-8").partition("\n[remaining]")[0]
    rows = "".join(f'"{where}" = {count}\n' for where, count in counts.items())
    FILE.write_text(f"{text}\n[remaining]\n# `.ci/prose --update` lowers them.\n{rows}", encoding="utf-8")


def _commands(command: click.Command, name: str) -> Iterator[Text]:
    yield Text(f"{name} --help", 0, command.help or "")
    for option in command.params:
        if isinstance(option, click.Option):
            yield Text(f"{name} {option.opts[0]}", 0, option.help or "")
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            if (inner := command.get_command(context, word)) is not None:
                yield from _commands(inner, f"{name} {word}")


def _strings(path: Path) -> Iterator[ast.Constant]:
    tree = _tree(path)
    documentation = {id(node) for node in _docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node


def _without_code(line: str) -> str:
    """Return a line of a docstring without names of arguments, or only the comment of a line of code."""
    text = re.sub(r"(?:^|(?<=\. ))[a-z_]+(?=: )", "", line.strip())
    code, _, comment = text.partition("#")
    try:
        (statement,) = ast.parse(code.strip()).body
    except (SyntaxError, ValueError):
        return text
    calls = any(isinstance(node, ast.Call) for node in ast.walk(statement))
    return comment if calls else text


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    # Also those under an attribute.
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _sources(folders: Iterable[str]) -> list[Path]:
    files = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return [path for path in files if not _name(path).startswith(_FOREIGN)]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    elif sys.argv[1:2] == ["--internal"]:
        print(*found(internal(sys.argv[2:] or FOLDERS)), sep="\n")  # noqa: T201 - what was requested
    elif wrong := problems():
        print(*wrong, sep="\n")  # noqa: T201 - the result
        sys.exit(1)
