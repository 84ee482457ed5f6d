"""Recorded conversations with the real servers, byte by byte, one JSON object a line.

The `.jsonl` files of this package are the sets; `core:map-001` cites a conversation. README.md and
`../steps/schema.json` describe the format.

    from kvref_conformance import corpus

    corpus.load("core")["map-001"]
    corpus.find("core:map-001")

Reading path: `conversation.py` (what a line is), `holes.py` (what may differ), `observe.py` over `player.py`
(replay), `targets/` (the servers), `record.py` over `detect.py` (recording).
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kvref import documents
from kvref.documents import DocumentError
from kvref.errors import SuiteError, cause_of, choices
from kvref_conformance.corpus.conversation import from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kvref_conformance.corpus.conversation import Conversation

SETS: Final = ("core", "columns", "tx", "binary", "more")


@cache
def load(name: str) -> Mapping[str, Conversation]:
    """Load a set by id.

    Args:
        name: one of SETS.

    Raises:
        SuiteError: as `parse`; also for a set that does not exist.
    """
    if name not in SETS:
        raise SuiteError(f"no set of transcripts {name!r}{choices(name, SETS)}")
    return parse(files(__package__).joinpath(f"{name}.jsonl").read_text(encoding="utf-8"), f"{name}.jsonl")


def find(citation: str) -> Conversation:
    """Find a conversation by its citation, `core:map-001`.

    Raises:
        SuiteError: there is none of that name.
    """
    name, _, identifier = citation.partition(":")
    conversations = load(name)
    if identifier not in conversations:
        raise SuiteError(f"no conversation {citation!r} among the transcripts")
    return conversations[identifier]


def parse(text: str, where: str) -> dict[str, Conversation]:
    """Read conversations, one JSON object a line.

    Args:
        text: the lines.
        where: name of the file, for errors.

    Raises:
        SuiteError: a line is not a JSON object or not a conversation, or an ID occurs twice; the text names file and
            line.
    """
    conversations: dict[str, Conversation] = {}
    # Not splitlines: an answer may hold characters that Unicode counts as ends of lines.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            conversation = from_json(documents.json_of(line))
        except (DocumentError, SuiteError) as error:
            raise SuiteError(f"{where}, line {number}: {error}") from error
        if conversation.id in conversations:
            raise SuiteError(f"{where}, line {number}: duplicate id {conversation.id}")
        conversations[conversation.id] = conversation
    return conversations


def read(path: Path) -> dict[str, Conversation]:
    """Read a file of conversations.

    Raises:
        SuiteError: as `parse`; also for a line that the schema does not allow and a file that cannot be read.
    """
    try:
        text = documents.read_text(path)
    except (OSError, DocumentError) as error:
        raise SuiteError(f"{path} cannot be read: {cause_of(error)}") from error
    conversations = parse(text, str(path))
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - the suite's own recordings are read without it
    from jsonschema.exceptions import best_match  # noqa: PLC0415

    validator = Draft202012Validator(schema())
    for conversation in conversations.values():
        fault = best_match(validator.iter_errors(to_json(conversation)))
        if fault is not None:
            raise SuiteError(f"{path}, {conversation.id!r}, {fault.json_path}: {fault.message}")
    return conversations


def schema() -> dict[str, Any]:
    """Return the JSON schema of a line."""
    steps = json.loads(files("kvref_conformance.steps").joinpath("schema.json").read_text(encoding="utf-8"))
    return {"$schema": steps["$schema"], "$ref": "#/$defs/recording", "$defs": steps["$defs"]}


def write(path: Path, conversations: Iterable[Conversation]) -> None:
    """Write a file of conversations, whole or not at all."""
    lines = [json.dumps(to_json(each), ensure_ascii=True) + "\n" for each in conversations]
    new = path.with_name(f"{path.name}.new")
    new.write_text("".join(lines), encoding="utf-8")
    new.replace(path)
