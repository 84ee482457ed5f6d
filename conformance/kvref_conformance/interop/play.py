"""Run a script against an endpoint and judge its output, feature by feature."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kvref_conformance.interop.rows import Feature

WORKS: Final = "works"
WRONG: Final = "wrong"
CANNOT: Final = "cannot"
NOT_RUN: Final = "not run"

# A script takes three seconds; one whose every call waits for its own timeout is cut off.
PATIENCE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Cell:
    """The result of one feature of one client at one endpoint.

    outcome: WORKS, WRONG, CANNOT or NOT_RUN.
    why: the result if it is wrong; the client's reason if it lacks the feature.
    """

    outcome: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Played:
    """A script's run: the versions it names and its cells by feature."""

    version: str = ""
    runtime: str = ""
    cells: dict[str, Cell] = field(default_factory=dict)


def play(
    words: Sequence[str],
    environment: Mapping[str, str],
    arguments: Sequence[str],
    features: Iterable[Feature],
    patience: float = PATIENCE,
) -> Played:
    """Run a script to its end.

    Args:
        words: command line without arguments.
        environment: additional environment variables.
        arguments: HOST, PORT, PROTOCOL and PREFIX, with which all its keys begin.
        features: the columns.
        patience: timeout in seconds.

    Returns:
        A cell for each feature. A feature is wrong if the script prints no line for it, ends early or hangs; a script
        that does not print its own name did not run.
    """
    ended = ""
    try:
        done = subprocess.run(
            [*words, *arguments],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience,
            check=False,
        )
        printed, error = done.stdout, done.stderr
        if done.returncode:
            ended = f"the script ended with {done.returncode}: "
    except subprocess.TimeoutExpired as late:
        printed, error = late.stdout or b"", late.stderr or b""
        ended = f"the script did not end in {patience:.0f} s: "
    except OSError as refused:
        return not_run(features, str(refused))
    last = (error.decode(errors="replace").strip().splitlines() or [""])[-1]
    return judge(printed.decode(errors="replace").splitlines(), f"{ended}{last}".strip(), features)


def not_run(features: Iterable[Feature], why: str) -> Played:
    """Return the cells of a client that could not be started."""
    return Played(cells={feature.id: Cell(NOT_RUN, why) for feature in features})


def judge(lines: Sequence[str], ended: str, features: Iterable[Feature]) -> Played:
    """Judge the lines of a script.

    Args:
        lines: what it printed.
        ended: how it ended where it did not do so in order, or what it said last on standard error.
        features: the columns.
    """
    results = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
    if not results or "client" not in results[0]:
        return not_run(features, ended or "the script reported nothing")
    by_feature = {line["feature"]: line for line in results[1:]}
    cells = {each.id: _cell(by_feature.get(each.id), each, ended) for each in features}
    return Played(results[0]["version"], results[0]["runtime"], cells)


def _cell(line: Mapping[str, Any] | None, feature: Feature, ended: str) -> Cell:
    if line is None:
        return Cell(WRONG, ended or "the script did not report it")
    if "cannot" in line:
        return Cell(CANNOT, line["cannot"])
    # As JSON, since in Python true is 1.
    came, wanted = json.dumps(line["came"], ensure_ascii=False), json.dumps(feature.comes, ensure_ascii=False)
    return Cell(WORKS) if came == wanted else Cell(WRONG, came)
