"""The error replies of the server, read from the source: texts behind CLIENT_ERROR and SERVER_ERROR."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import kvref
from generators.markup import code, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT: Final = Path(kvref.__file__).parent
# Packages that send no reply of the server.
OTHERS: Final = frozenset({"cli", "client", "doctor", "mutants", "targets"})
CALLS: Final = {"ClientError": "CLIENT_ERROR", "ServerError": "SERVER_ERROR"}


def pages() -> Mapping[str, str]:
    """Return the tables, which `reference/errors.md` includes."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(ROOT.rglob("*.py")):
        if path.relative_to(ROOT).parts[0] not in OTHERS:
            for text in _texts(ast.parse(path.read_text(encoding="utf-8"))):
                found[text].add(path.relative_to(ROOT.parent).as_posix())
    made = {}
    for kind in CALLS.values():
        rows = [
            (code(text), ", ".join(f"{{src}}`{place}`" for place in sorted(places)))
            for text, places in sorted(found.items())
            if text.startswith(kind)
        ]
        made[f"reference/generated/{kind.lower()}.txt"] = table(("reply", "source"), rows)
    return made


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes | str):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if (
                text.strip() not in CALLS.values()
                and text.startswith(tuple(CALLS.values()))
                and "\n" not in text.strip()
            ):
                yield text.strip()
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS and node.args:
            text = _literal(node.args[0])
            if text:
                yield f"{CALLS[node.func.id]} {text}"


def _literal(node: ast.expr) -> str:
    """Return a string with its replaced parts as names in braces; empty for any other expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else _named(part)
            for part in node.values
        )
    return ""


def _named(part: ast.expr) -> str:
    if not isinstance(part, ast.FormattedValue):
        return ""
    return "{" + ast.unparse(part.value).rpartition(".")[2].strip("_()") + "}"
