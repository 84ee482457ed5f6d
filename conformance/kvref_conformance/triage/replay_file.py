"""A failure as a file: a case with its steps, for one profile, that `kvref replay FILE HOST:PORT` holds again.

Texts stay templates (`template.py`), so that each time has fresh keys and the tables of its own run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, TypedDict

from kvref import documents, profiles
from kvref.documents import DocumentError
from kvref.specification import requirements
from kvref_conformance import __version__
from kvref_conformance.case import (
    Answers,
    Asks,
    By,
    Case,
    Ends,
    Eventually,
    Hangup,
    Logged,
    Mark,
    Pause,
    Reload,
    Say,
    Setup,
    Shape,
    Sql,
    Starts,
    Tick,
)
from kvref_conformance.errors import CannotJudge
from kvref_conformance.typed import faults_of

if TYPE_CHECKING:
    from pathlib import Path

    from kvref.profiles import Profile
    from kvref_conformance.case import Step
    from kvref_conformance.verdict import Verdict

FORMAT: Final = 1
KINDS: Final = (Say, Hangup, Sql, Reload, Pause, Tick, Asks, Answers, Starts, Ends, Eventually, Mark, Logged)
STEPS: Final = {kind.__name__.lower(): kind for kind in KINDS}
# What the annotations of steps name, and modules import for type checkers only.
_NAMES: Final = {"Mapping": Mapping, "By": By, "Say": Say, "Sql": Sql}
_SECONDS: Final = frozenset({"patience", "within", "seconds", "silent"})
# Lengths in templates: `{k:32}`, `{v~1024}`.
_SIZES: Final = re.compile(r"[:~](\d+)\}")
MAX_SECONDS: Final = 3600
MAX_DIGITS: Final = 7
MAX_SHOWN: Final = 60
PLAIN_CASE: Final = ("id", "bind", "flushes", "engine")


class _Plain(TypedDict):
    """Fields of the file that are no steps."""

    id: str
    bind: str
    flushes: bool
    engine: str
    requirements: tuple[str, ...]
    settings: Mapping[str, int] | None
    profile: str
    chapter: str


@dataclass(frozen=True, slots=True)
class Script:
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
        **{name: getattr(case, name) for name in PLAIN_CASE},
        "settings": case.settings and dict(case.settings),
        "setup": case.setup and asdict(case.setup),
        "shape": case.shape and asdict(case.shape),
        "steps": [_written(step, profile) for step in case.steps],
    }
    return json.dumps(made, indent=1) + "\n"


def read(path: Path) -> Script:
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
            raise CannotJudge(f"{path}: no profile {made['profile']!r}: choose {', '.join(profiles.names())}")
        return Script(_case(made), made["chapter"], made["profile"])
    except KeyError as error:
        raise CannotJudge(f"{path}: malformed: no {error}: run the suite again") from error
    except (TypeError, ValueError) as error:
        raise CannotJudge(f"{path}: malformed: {error}: run the suite again") from error


def _case(made: dict[str, Any]) -> Case:
    given = {name: made[name] for name in (*PLAIN_CASE, "requirements", "settings")}
    _check(given | {"profile": made["profile"], "chapter": made["chapter"]}, _Plain, "the file")
    if unknown := sorted(set(made["requirements"]) - requirements.load().keys()):
        raise ValueError(f"no requirement {unknown[0]!r}")
    if not isinstance(made["steps"], list) or not made["steps"]:
        raise ValueError("steps is no list of steps")
    return Case(
        requirements=tuple(made["requirements"]),
        steps=tuple(map(_step, made["steps"])),
        setup=_made(Setup, made["setup"], "setup"),
        shape=_made(Shape, made["shape"], "shape"),
        settings=made["settings"],
        **{name: made[name] for name in PLAIN_CASE},
    )


def _written(step: Step, profile: Profile) -> dict[str, Any]:
    if isinstance(step, Eventually):
        return {"eventually": {"step": _written(step.step, profile), "within": step.within}}
    if isinstance(step, Say | Answers) and isinstance(step.allow, By):
        step = replace(step, allow=step.allow.of(profile))
    return {type(step).__name__.lower(): {f.name: getattr(step, f.name) for f in fields(step)}}


def _step(made: object) -> Step:
    if not isinstance(made, dict) or len(made) != 1 or not made.keys() <= STEPS.keys():
        raise ValueError(f"{repr(made)[:MAX_SHOWN]} is no step: a step is one of {', '.join(STEPS)}")
    ((name, given),) = made.items()
    if name != "eventually":
        step: Step = _made(STEPS[name], given, name)
        return step
    if not isinstance(given, dict) or given.keys() != {"step", "within"}:
        raise ValueError("eventually has a step and within")
    inner = _step(given["step"])
    if not isinstance(inner, Say | Sql):
        raise TypeError(f"{repr(given['step'])[:MAX_SHOWN]} cannot be repeated")
    _check({"within": given["within"]}, Eventually, name)
    return Eventually(inner, given["within"])


def _made(kind: type[Any], given: object, where: str) -> Any:
    """Return a part of a case as its class has it; None for none."""
    if given is None and kind in (Setup, Shape):
        return None
    if not isinstance(given, dict):
        raise TypeError(f"{where}: {repr(given)[:MAX_SHOWN]} is no table")
    _check(given, kind, where)
    missing = [f.name for f in fields(kind) if f.default is MISSING and f.name not in given]
    if missing:
        raise ValueError(f"{where}: no {missing[0]}")
    return kind(**_frozen(given))


def _check(given: dict[str, Any], kind: type, where: str) -> None:
    """Raise ValueError if a field is unknown, of another type, or exceeds the time or memory limits of a case."""
    if fault := faults_of(given, kind, _NAMES, where):
        raise ValueError(fault)
    for name, value in given.items():
        if isinstance(value, float | int) and name in _SECONDS and not 0 <= value <= MAX_SECONDS:
            raise ValueError(f"{where}.{name}: {value}: write 0 to {MAX_SECONDS} seconds")
    for size in _SIZES.findall(json.dumps(given)):
        if len(size) > MAX_DIGITS:
            raise ValueError(f"{where}: a text of {size[:MAX_SHOWN]} characters is too long")


def _frozen(given: dict[str, Any]) -> dict[str, Any]:
    return {name: _as_tuple(value) for name, value in given.items()}


def _as_tuple(value: object) -> object:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value
