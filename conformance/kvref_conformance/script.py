"""A failure as a file: a case with its steps, for one profile, that `kvref replay FILE HOST:PORT` holds again.

Texts stay templates (`template.py`), so that each time has fresh keys and the tables of its own run.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from kvref import profiles
from kvref_conformance import __version__
from kvref_conformance.case import By, Case, Hangup, Pause, Reload, Say, Setup, Shape, Sql, Tick
from kvref_conformance.errors import CannotJudge
from kvref_conformance.waiting import Answers, Asks, Ends, Eventually, Logged, Mark, Starts

if TYPE_CHECKING:
    from pathlib import Path

    from kvref.profiles import Profile
    from kvref_conformance.case import Step
    from kvref_conformance.verdict import Verdict

FORMAT: Final = 1
KINDS: Final = (Say, Hangup, Sql, Reload, Pause, Tick, Asks, Answers, Starts, Ends, Eventually, Mark, Logged)
STEPS: Final = {kind.__name__.lower(): kind for kind in KINDS}
PLAIN_CASE: Final = ("id", "bind", "flushes", "engine")


@dataclass(frozen=True, slots=True)
class Script:
    """What such a file says.

    Args:
        case: to be held.
        chapter: it belongs to.
        profile: by which it is judged.
    """

    case: Case
    chapter: str
    profile: str


def as_json(case: Case, profile: Profile, seen: Verdict, about: dict[str, str]) -> str:
    """Return the file of a failure.

    Args:
        case: what was held; where its answers go by a fact, the profile's are written.
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
        made = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CannotJudge(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise CannotJudge(f"{path}: no JSON: {error}") from error
    if not isinstance(made, dict) or made.get("kind") != "kvref replay":
        raise CannotJudge(f"{path}: no replay file: `kvref conform` writes them, into `replays` of its report")
    if made.get("format") != FORMAT:
        raise CannotJudge(f"{path}: format {made.get('format')!r}, this release reads {FORMAT}: run the suite again")
    try:
        if made["profile"] not in profiles.names():
            raise CannotJudge(f"{path}: no profile {made['profile']!r}: choose {', '.join(profiles.names())}")
        return Script(_case(made), made["chapter"], made["profile"])
    except (KeyError, TypeError, ValueError) as error:
        raise CannotJudge(f"{path}: malformed: {type(error).__name__} {error}: run the suite again") from error


def _case(made: dict[str, Any]) -> Case:
    return Case(
        requirements=tuple(made["requirements"]),
        steps=tuple(map(_step, made["steps"])),
        setup=made["setup"] and Setup(**_frozen(made["setup"])),
        shape=made["shape"] and Shape(**made["shape"]),
        settings=made["settings"],
        **{name: made[name] for name in PLAIN_CASE},
    )


def _written(step: Step, profile: Profile) -> dict[str, Any]:
    if isinstance(step, Eventually):
        return {"eventually": {"step": _written(step.step, profile), "within": step.within}}
    if isinstance(step, Say | Answers) and isinstance(step.allow, By):
        step = replace(step, allow=step.allow.of(profile))
    return {type(step).__name__.lower(): {f.name: getattr(step, f.name) for f in fields(step)}}


def _step(made: dict[str, Any]) -> Step:
    ((name, given),) = made.items()
    if name == "eventually":
        inner = _step(given["step"])
        if not isinstance(inner, Say | Sql):
            raise ValueError(f"{given['step']} cannot be repeated")
        return Eventually(inner, given["within"])
    step: Step = STEPS[name](**_frozen(given))
    return step


def _frozen(given: dict[str, Any]) -> dict[str, Any]:
    return {name: _as_tuple(value) for name, value in given.items()}


def _as_tuple(value: object) -> object:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value
