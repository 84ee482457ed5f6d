"""A failure as a file: a case with its steps, for one profile, that `kvref replay FILE HOST:PORT` runs again.

`steps/schema.json` describes it. Texts stay templates (`wire/template.py`), so that each time
has fresh keys and the tables of its own run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, TypedDict

from kvref import documents, profiles
from kvref.documents import DocumentError
from kvref.errors import choices
from kvref.specification import requirements
from kvref_conformance import __version__
from kvref_conformance.case import Case, Setup, Shape
from kvref_conformance.errors import CannotJudge
from kvref_conformance.steps.forms import Writer, check, table
from kvref_conformance.steps.forms import read as read_step

if TYPE_CHECKING:
    from pathlib import Path

    from kvref.profiles import Profile
    from kvref_conformance.judging.verdict import Verdict

FORMAT: Final = 2
CASE_FIELDS: Final = ("id", "bind", "flushes", "engine")


class _CaseFields(TypedDict):
    """Fields of the file that are not steps."""

    id: str
    bind: str
    flushes: bool
    engine: str
    requirements: tuple[str, ...]
    settings: Mapping[str, int] | None
    profile: str
    chapter: str


@dataclass(frozen=True, slots=True)
class ReplayFile:
    """The content of such a file.

    Args:
        case: the case to run.
        chapter: its chapter.
        profile: the profile that it is judged by.
    """

    case: Case
    chapter: str
    profile: str


def as_json(case: Case, profile: Profile, seen: Verdict, about: dict[str, str]) -> str:
    """Return the file of a failure.

    Args:
        case: the case that was run; replies that depend on a fact are written for the profile.
        profile: of the endpoint.
        seen: the verdict, with the conversation as it was.
        about: the endpoint, for the reader.
    """
    made = {
        "kind": "kvref replay",
        "format": FORMAT,
        "suite": __version__,
        "profile": profile.name,
        "chapter": seen.chapter,
        **about,
        "seen": {
            "verdict": seen.verdict,
            "repeated": seen.repeated,
            "conversation": [
                {"on": e.on, "sent": e.sent, "allowed": e.allowed, "got": e.got, "note": e.note}
                for e in seen.conversation
            ],
        },
        "requirements": case.requirements,
        **{name: getattr(case, name) for name in CASE_FIELDS},
        "settings": case.settings and dict(case.settings),
        "setup": case.setup and asdict(case.setup),
        "shape": case.shape and asdict(case.shape),
        "steps": list(map(Writer(profile).step, case.steps)),
    }
    return json.dumps(made, indent=1) + "\n"


def read(path: Path) -> ReplayFile:
    """Read such a file.

    Args:
        path: of it.

    Raises:
        CannotJudge: it is missing, no replay file, of another format, or malformed.
    """
    try:
        made = documents.read_json(path)
    except OSError as error:
        raise CannotJudge(f"{path}: {error.strerror or error}") from error
    except DocumentError as error:
        raise CannotJudge(f"{path}: no JSON: {error}") from error
    if not isinstance(made, dict) or made.get("kind") != "kvref replay":
        raise CannotJudge(f"{path}: no replay file: `kvref conform` writes them, into `replays` of its report")
    if made.get("format") != FORMAT:
        raise CannotJudge(f"{path}: format {made.get('format')!r}, this release reads {FORMAT}: run the suite again")
    try:
        if made["profile"] not in profiles.names():
            raise CannotJudge(
                f"{path}: no profile {made['profile']!r}{choices(str(made['profile']), profiles.names())}"
            )
        return ReplayFile(_case(made), made["chapter"], made["profile"])
    except KeyError as error:
        raise CannotJudge(f"{path}: malformed: no {error}: run the suite again") from error
    except (TypeError, ValueError) as error:
        raise CannotJudge(f"{path}: malformed: {error}: run the suite again") from error


def _case(made: dict[str, Any]) -> Case:
    given = {name: made[name] for name in (*CASE_FIELDS, "requirements", "settings")}
    check(given | {"profile": made["profile"], "chapter": made["chapter"]}, _CaseFields, "the file")
    if unknown := sorted(set(made["requirements"]) - requirements.load().keys()):
        raise ValueError(f"no requirement {unknown[0]!r}")
    if not isinstance(made["steps"], list) or not made["steps"]:
        raise ValueError("steps is not a list of steps")
    return Case(
        requirements=tuple(made["requirements"]),
        steps=tuple(map(read_step, made["steps"])),
        setup=None if made["setup"] is None else table(Setup, made["setup"], "setup"),
        shape=None if made["shape"] is None else table(Shape, made["shape"], "shape"),
        settings=made["settings"],
        **{name: made[name] for name in CASE_FIELDS},
    )
