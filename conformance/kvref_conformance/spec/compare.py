"""What differs: between two profiles, and between two versions of the specification."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from kvref import profiles
from kvref.errors import SuiteError, cause_of
from kvref.profiles import vocabulary
from kvref.specification import requirements
from kvref_conformance.spec.edition import FORMAT
from kvref_conformance.spec.normative import code, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# Tables of the JSON whose rows have a name, and what the changelog calls a row.
ROWS: Final = {"replies": "reply", "success": "reply", "statistics": "row of `stats`"}


def profiles_page(one: str, other: str) -> str:
    """Return what differs between two profiles, as Markdown: facts, and requirements that only one of them has.

    Args:
        one: name of a profile.
        other: name of another.
    """
    loaded = profiles.load(one), profiles.load(other)
    facts = [
        (code(key), row["means"], code(str(loaded[0][key])), code(str(loaded[1][key])))
        for key, row in vocabulary().items()
        if loaded[0][key] != loaded[1][key]
    ]
    parts = [f"# {one} and {other}", "## Facts that differ", table(("fact", "meaning", code(one), code(other)), facts)]
    for name, without in ((one, other), (other, one)):
        parts.append(f"## Requirements of {name} that {without} does not have")
        found = [
            each for each in requirements.load().values() if each.applies_to(name) and not each.applies_to(without)
        ]
        parts.append("\n".join(f"* **{each.id}** ({each.level}). {each.statement}" for each in found) or "None.")
    return "\n\n".join(parts) + "\n"


def read(path: Path) -> dict[str, Any]:
    """Read an edition that `kvref spec --json` wrote.

    Args:
        path: of the file.

    Raises:
        SuiteError: the file cannot be read or is not an edition of this format.
    """
    try:
        made = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SuiteError(f"{path}: {cause_of(error)}") from error
    if not isinstance(made, dict) or made.get("format") != FORMAT or "chapters" not in made:
        raise SuiteError(f"{path} is not an edition of format {FORMAT}: write it with kvref spec --json FILE")
    return made


def changelog(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return what has changed from one edition to another, as Markdown.

    Args:
        old: as `read` returns it.
        new: a later one of the same profile.

    Raises:
        SuiteError: the editions are of different profiles.
    """
    if old["profile"] != new["profile"]:
        raise SuiteError(f"the editions are of the profiles {old['profile']} and {new['profile']}")
    before, after = _requirements(old), _requirements(new)
    parts = [f"# {new['profile']}: from {old['version']} to {new['version']}"]
    parts += _section(
        "New requirements", (f"* **{name}**. {after[name]['statement']}" for name in after if name not in before)
    )
    parts += _section(
        "Removed requirements", (f"* **{name}**. {before[name]['statement']}" for name in before if name not in after)
    )
    both = [name for name in after if name in before]
    parts += _section(
        "Changed statements", (line for name in both for line in _changed(name, before[name], after[name]))
    )
    parts += _section("Changed cases", _cases(old, new))
    for key, what in ROWS.items():
        parts += _section(f"Changed rows of {key}", _rows(what, old[key], new[key]))
    for key in ("grammar", "binary", "data_model", "defaults", "states"):
        parts += _section(f"Changes of {key}", _values(key, old[key], new[key]))
    return "\n\n".join(parts if len(parts) > 1 else [*parts, "Nothing has changed."]) + "\n"


def _section(title: str, lines: Iterator[str]) -> list[str]:
    text = "\n".join(lines)
    return [f"## {title}", text] if text else []


def _requirements(edition: Mapping[str, Any]) -> dict[str, Any]:
    return {each["id"]: each for chapter in edition["chapters"] for each in chapter["requirements"]}


def _changed(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    if before["level"] != after["level"]:
        yield f"* **{name}**: the level was {before['level']} and is {after['level']}."
    if before["statement"] != after["statement"]:
        yield f"* **{name}**\n  * before: {before['statement']}\n  * now: {after['statement']}"


def _cases(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, after = (
        {case["case"]: case for chapter in each["chapters"] for case in chapter["cases"]} for each in (old, new)
    )
    for name in dict.fromkeys([*before, *after]):
        if before.get(name, {}).get("steps") != after.get(name, {}).get("steps"):
            yield f"* {_kind(name in before, name in after)} {code(name)}"


def _rows(what: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield f"* {_kind(name in before, name in after)} {what} {code(name)}"


def _kind(before: bool, after: bool) -> str:
    return "changed" if before and after else "new" if after else "removed"


def _values(path: str, before: Any, after: Any) -> Iterator[str]:
    """Yield the places at which two values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            yield from _values(f"{path}.{name}", before.get(name), after.get(name))
    elif isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        was, now = before.splitlines(), after.splitlines()
        yield from (f"* {path}: removed `` {line} ``" for line in was if line not in now)
        yield from (f"* {path}: new `` {line} ``" for line in now if line not in was)
    elif before != after:
        yield f"* {path}: {json.dumps(before)} is now {json.dumps(after)}"
