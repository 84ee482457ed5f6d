"""Find words that a reader would have to decode, as .ci/prose.toml lists them.

Help, settings, metrics, texts in code and TOML files, documents, notebooks, docstrings, comments and names in code have
none of them.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import click

from kvref.cli import main

ROOT: Final = Path(__file__).resolve().parent.parent
FILE: Final = ROOT / ".ci" / "prose.toml"
PACKAGES: Final = ("kvref", "conformance", "bench", "notebooks")
FOLDERS: Final = (*PACKAGES, "docs", "tests")
# Keys of TOML files whose texts a page or a report shows.
SHOWN: Final = frozenset(
    "statement title about reason means untestable contradicts question cause fix expectation rule".split()
)
# Scripts for the containers of other languages, pages generated from recordings, and what git ignores of the site.
_FOREIGN: Final = (
    "conformance/kvref_conformance/interop/scripts",
    "conformance/standing",
    *(line for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines() if line.startswith("docs/")),
)
_SENTENCES: Final = ("conformance/kvref_testbed/mutants", "conformance/kvref_testbed/simulation/defects.py")


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


def phrases(table: str = "phrase") -> list[Phrase]:
    """Return the phrases of prose.toml; those for names are in the table `name`."""
    rows = _vocabulary()[table]
    return [Phrase(re.compile(rf"\b(?:{row['match']})\b", re.IGNORECASE), row["write"]) for row in rows]


@cache
def _any_phrase() -> re.Pattern[str]:
    return re.compile("|".join(each.pattern.pattern for each in phrases()), re.IGNORECASE)


@cache
def _has_phrase(path: Path) -> bool:
    """Return whether a phrase is anywhere in a file, also across the parts of a text on several lines."""
    parts = re.compile(r"""(["'])\s*\n\s*[bfrBFR]*["']""")
    text = path.read_text(encoding="utf-8")
    return _any_phrase().search(text) is not None or _any_phrase().search(parts.sub("", text)) is not None


def found(texts: Iterable[Text]) -> Iterator[Found]:
    """Yield each phrase in some texts; code in backticks and addresses are skipped."""
    banned = phrases()
    for each in texts:
        if not _any_phrase().search(each.text):
            continue
        for number, line in enumerate(each.text.splitlines()):
            prose = re.sub(r"`[^`]*`|https?://\S+", "`", line)
            for phrase in banned:
                for match in phrase.pattern.finditer(prose):
                    yield Found(each.where, each.line + number if each.line else 0, match[0], phrase.write, line)


def visible() -> Iterator[Text]:
    """Yield what the program shows a person: help, and every text of several words in the files that have a phrase."""
    yield from _commands(main, "kvref")
    kept = [row["text"] for row in _vocabulary()["kept"]]
    for path in filter(_has_phrase, _sources(PACKAGES)):
        for node in _strings(path):
            if " " in node.value.strip() and not any(text in node.value for text in kept):
                yield Text(_name(path), node.lineno, node.value)


def documents() -> Iterator[Text]:
    """Yield the Markdown files of the repository without their code blocks, and the text cells of the notebooks."""
    files = [*ROOT.glob("*.md"), *ROOT.glob(".github/**/*.md")]
    files += [path for folder in (*PACKAGES, "docs") for path in (ROOT / folder).rglob("*.md")]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        yield from (Text(_name(path), 0, "".join(each["source"])) for each in cells if each["cell_type"] == "markdown")
    for path in sorted(files):
        if not _name(path).startswith(_FOREIGN):
            text = path.read_text(encoding="utf-8")
            blocks = re.compile(r"^ *(```+).*?^ *\1", re.DOTALL | re.MULTILINE)
            yield Text(_name(path), 1, blocks.sub(lambda block: "\n" * block[0].count("\n"), text))


def tables() -> Iterator[Text]:
    """Yield the texts of TOML files that pages and reports show: requirements, facts, deviations, faults, scenarios."""
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.toml")):
        yield from (Text(_name(path), 0, text) for text in _shown(tomllib.loads(path.read_text(encoding="utf-8"))))


def _shown(value: object, key: str = "") -> Iterator[str]:
    if isinstance(value, str) and key in SHOWN:
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _shown(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _shown(inner, key)


def internal() -> Iterator[Text]:
    """Yield the docstrings and comments of the Python files that have a phrase anywhere."""
    for path in filter(_has_phrase, _sources(FOLDERS)):
        with tokenize.open(path) as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type == tokenize.COMMENT:
                    yield Text(_name(path), token.start[0], token.string)
        for node in _docstrings(_tree(path)):
            yield Text(_name(path), node.lineno, "\n".join(map(_without_code, node.value.splitlines())))


def names() -> Iterator[Text]:
    """Yield the names that the packages define, in words: `_ReplyQueue` is `reply queue`.

    The functions of mutants and defects are left out: their names are sentences about what a server does wrong.
    """
    for path in _sources(PACKAGES):
        if _name(path).startswith(_SENTENCES):
            continue
        defined = {path.stem: 1} | {name: line for line, name in _defined(_tree(path))}
        for name, line in defined.items():
            yield Text(_name(path), line, " ".join(re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)).lower())


def _defined(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def found_in_names() -> Iterator[Found]:
    """Yield each word to avoid in the names that the packages define."""
    banned = phrases("name")
    kept = {(row["name"], where) for row in _vocabulary()["kept_name"] for where in row.get("files", [""])}
    for each in names():
        if not kept.isdisjoint({(each.text, ""), (each.text, each.where)}):
            continue
        for phrase in banned:
            if match := phrase.pattern.search(each.text):
                yield Found(each.where, each.line, match[0], phrase.write, each.text)


def problems() -> list[str]:
    """Return a line for each phrase in visible texts, documents, tables, docstrings, comments and names."""
    kinds = (visible(), documents(), tables(), internal())
    return [str(each) for texts in kinds for each in found(texts)] + [str(each) for each in found_in_names()]


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
    if wrong := problems():
        print(*wrong, sep="\n")  # noqa: T201 - the result
        sys.exit(1)
