"""The error replies of the server: their texts, read from the source, with cause and fix of the table of replies.

The table is `kvref/specification/normative/replies.toml`.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import kvref
from generators.markup import code, table
from kvref.protocol.binary import INTERNAL, TEXTS
from kvref.specification import normative

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT: Final = Path(kvref.__file__).parent
# Packages that send no reply of the server.
OTHERS: Final = frozenset({"cli", "client", "doctor"})
CALLS: Final = {"ClientError": "CLIENT_ERROR", "ServerError": "SERVER_ERROR"}
KINDS: Final = ("ERROR", *CALLS.values())
# Exceptions of a store, whose text becomes the text of a SERVER_ERROR.
FAILURES: Final = frozenset(
    {"StoreError", "BusyError", "LostError", "HangError", "CycleError", "DownError", "RetryableError"}
)
RAISING: Final = ("storage", "server/executors")
# The status of a failed authentication, which the listener sends (kvref/server/listeners/authentication.py).
AUTHENTICATION: Final = {0x20: "Auth failure."}
# Texts that the source puts together from parts; cases of the suite demand each.
COMPOSED: Final = frozenset(
    {
        "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]",
        "CLIENT_ERROR options flags are too long",
        "SERVER_ERROR {cause}: {writes} pending writes are lost",
    }
)
# Texts that become part of a reply, by the name of their constant.
PARTS: Final = frozenset({"LOCK_WAIT", "_UNKNOWN", "UNDONE"})


def pages() -> Mapping[str, str]:
    """Return the tables, which `reference/errors.md` includes.

    Raises:
        KeyError: the table does not have a reply.
    """
    explained = meanings()
    made = {}
    for kind in KINDS:
        rows = [
            (code(text), explained[text]["cause"], explained[text]["fix"])
            for text in sorted(replies())
            if _is_of(text, kind)
        ]
        made[f"reference/generated/{kind.lower()}.txt"] = table(("reply", "cause", "fix"), rows)
    made["reference/generated/binary_status.txt"] = table(
        ("status", "text", "cause", "fix"),
        [
            (code(number), text, explained[number]["cause"], explained[number]["fix"])
            for number, text in statuses().items()
        ],
    )
    return made


def meanings() -> dict[str, dict[str, str]]:
    """Return cause and fix of every reply and binary status by its text, in Markdown."""
    return normative.table("replies")


def statuses() -> dict[str, str]:
    """Return the text of every binary error status by its number in hexadecimal digits."""
    fixed = {number: text.decode() for number, text in TEXTS.items()}
    texts = {**fixed, **AUTHENTICATION, INTERNAL: "the text of the SERVER_ERROR"}
    return {f"0x{number:02x}": texts[number] for number in sorted(texts)}


@cache
def replies() -> frozenset[str]:
    """Return the text of every error reply, with replaced parts as names in braces."""
    found = set(COMPOSED)
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place.partition("/")[0] not in OTHERS:
            found |= {*_texts(ast.parse(path.read_text(encoding="utf-8")), fails=place.startswith(RAISING))}
    return frozenset(found)


def _is_of(text: str, kind: str) -> bool:
    """Return whether a reply is of a kind: memcached 1.6 has `ERROR: ` too (KV-CONN-041)."""
    return text == kind or text.startswith((f"{kind} ", f"{kind}: "))


def _texts(tree: ast.AST, *, fails: bool) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes | str):
            text = (node.value if isinstance(node.value, str) else node.value.decode("latin-1")).strip()
            # The name of a kind alone, as a `str`, is the begin of a text.
            if "\n" not in text and any(_is_of(text, kind) for kind in KINDS) and node.value not in KINDS:
                yield text
        elif isinstance(node, ast.Call) and node.args and (text := _literal(node.args[0])):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in CALLS or (fails and name in FAILURES):
                yield f"{CALLS.get(name, 'SERVER_ERROR')} {text}"
        elif (
            isinstance(node, ast.AnnAssign)
            and getattr(node.target, "id", "") in PARTS
            and (text := _literal(node.value))
        ):
            yield f"SERVER_ERROR {text}"


def _literal(node: ast.expr | None) -> str:
    """Return a string with its replaced parts as names in braces; empty for any other expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            f"{{{_name(part.value)}}}" if isinstance(part, ast.FormattedValue) else _literal(part)
            for part in node.values
        )
    return ""


def _name(part: ast.expr) -> str:
    """Return the name of a replaced part: `parts` of `len(parts)`, `column` of `column.name`."""
    match part:
        case ast.Attribute(value=value, attr="name"):
            return _name(value)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_").lower()
        case ast.Call(args=[ast.Constant(value=str(name))], func=ast.Attribute(attr="get")):
            return name
        case ast.Call(args=[ast.Name() | ast.Attribute() as first, *_]):
            return _name(first)
        case ast.Call(func=ast.Attribute(value=value)):
            return _name(value)
        case _:
            return ast.unparse(part)
