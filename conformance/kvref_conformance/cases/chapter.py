r"""Read a chapter: `cases/NAME.toml` has a table for each requirement, and in it the cases that judge it.

    [KV-TOUCH-006]
    touch-keeps-cas = [
        ["set {k} 0 0 1\r\nx\r\n", "STORED\r\n"],
        ["gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"],
        ["touch {k} 100\r\n", "TOUCHED\r\n"],
        ["gets {k}\r\n", "VALUE {k} 0 1 {a}\r\nx\r\nEND\r\n"],
    ]

    [KV-TOUCH-009]
    "touch-time-${time}" = [{ matrix = { time = ["x", "1x", "-"] } },
        ["set {k} 0 0 1\r\nx\r\n", "STORED\r\n"],
        ["touch {k} ${time}\r\n", "CLIENT_ERROR invalid exptime argument\r\n"],
    ]

A case is a list: tables with its conditions, if it has any, and its steps (`step_data.py`). The reference of the format
is docs/reference/cases.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from kvref.errors import SuiteError
from kvref.specification import requirements
from kvref_conformance.case import Case, Setup, Shape, case
from kvref_conformance.cases.step_data import FORMS, PROTOCOLS, StepReader, nulls, only
from kvref_conformance.cases.templates import filled, joined, parameters, rows
from kvref_conformance.data.typed import faults_of
from kvref_conformance.steps.forms import table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

SHARED: Final = ("tables", "setups", "settings", "steps", "texts")
CONDITIONS: Final[Mapping[str, Any]] = {
    "also": tuple[str, ...],
    "table": str | Mapping[str, object],
    "setup": str | Mapping[str, object],
    "settings": str | Mapping[str, int],
    "bind": str,
    "engine": str,
    "matrix": Mapping[str, object],
    "texts": Mapping[str, object],
}
# Several tables of a case may add to these.
_MERGED: Final = ("matrix", "texts")
ENGINES: Final = ("mysql", "sqlite", "plugin")
COMMON: Final = "common"
_FOLDER: Final = files(__package__)


@dataclass(frozen=True, slots=True)
class Shared:
    """What cases refer to by its name, each by kind and name, as decoded TOML."""

    tables: Mapping[str, Any]
    setups: Mapping[str, Any]
    settings: Mapping[str, Any]
    steps: Mapping[str, Any]
    texts: Mapping[str, Any]

    def with_own(self, own: Mapping[str, Any]) -> Shared:
        """Return this with what a file itself shares; raises ValueError for another kind of thing."""
        only(own, SHARED, "kind of what is shared")
        return Shared(**{kind: {**getattr(self, kind), **own.get(kind, {})} for kind in SHARED})

    def named(self, kind: str, given: Any) -> Any:
        """Return what is shared under a name, or what is given itself; raises ValueError for an unknown name."""
        if not isinstance(given, str):
            return given
        only([given], getattr(self, kind), f"name of {kind}")
        return getattr(self, kind)[given]

    def reader(self, protocol: str) -> StepReader:
        """Return a reader of steps."""
        return StepReader(self.steps, {name: each for name, each in self.texts.items() if "by" in each}, protocol)

    def fixed_texts(self) -> dict[str, Any]:
        """Return the texts that do not depend on a fact."""
        return {name: each for name, each in self.texts.items() if isinstance(each, str) or "by" not in each}


NOTHING: Final = Shared({}, {}, {}, {}, {})


@cache
def common() -> Shared:
    """Return what the cases of all chapters refer to, from `common.toml`."""
    return NOTHING.with_own(tomllib.loads(_text(COMMON)))


def literal_cases() -> tuple[Case, ...]:
    """Return the cases of all chapters that have a file, in the order of the specification.

    Raises:
        SuiteError: as `read`, or a file belongs to no chapter.
    """
    chapters = {chapter.name: [each.id for each in chapter.requirements] for chapter in requirements.chapters()}
    names = {entry.name.removesuffix(".toml") for entry in _FOLDER.iterdir() if entry.name.endswith(".toml")}
    try:
        only(sorted(names), [*chapters, COMMON], "chapter")
    except ValueError as error:
        raise SuiteError(f"cases: {error}: rename the file") from error
    found = (read(name, _text(name), ids, common()) for name, ids in chapters.items() if name in names)
    return tuple(chain.from_iterable(found))


def _text(name: str) -> str:
    return _FOLDER.joinpath(f"{name}.toml").read_text(encoding="utf-8")


def read(name: str, text: str, ids: Collection[str], shared: Shared = NOTHING) -> Iterator[Case]:
    """Yield the cases of a chapter.

    Args:
        name: of the chapter.
        text: of its file.
        ids: of the requirements of the chapter.
        shared: what all chapters refer to.

    Raises:
        SuiteError: it is not TOML, or a part is missing, unknown or of another type; the text names the file, the
            requirement, the case and what to write.
    """
    where = f"cases/{name}.toml"
    try:
        made = tomllib.loads(text)
        protocol = made.pop("protocol", PROTOCOLS[0])
        only([protocol], PROTOCOLS, "protocol")
        shared = shared.with_own(made.pop("shared", {}))
        only(made, ids, "requirement of this chapter")
    except ValueError as error:
        raise SuiteError(f"{where}: {error}") from error
    for requirement, cases in made.items():
        if not isinstance(cases, dict):
            raise SuiteError(f"{where}, {requirement}: write a table of cases by their names")
        for id_, given in cases.items():
            try:
                yield from _cases(id_, requirement, given, shared, shared.reader(protocol))
            except (ValueError, TypeError) as error:
                raise SuiteError(f"{where}, {requirement}, {id_}: {error}") from error


def _cases(id_: str, requirement: str, given: Any, shared: Shared, reader: StepReader) -> Iterator[Case]:
    conditions, steps = _parts(given)
    texts = shared.fixed_texts() | conditions.pop("texts", {})
    for row in rows(conditions.pop("matrix", {})):
        known = {name: joined(text) for name, text in filled(texts, row).items()} | row
        name, one = filled(id_, known), filled(conditions, known)
        if left := parameters([name, one]):
            raise ValueError(f"{left[0][0]} is neither in the matrix nor in texts")
        only(one.get("also", ()), requirements.load(), "requirement")
        only([one["engine"]] if "engine" in one else (), ENGINES, "engine")
        yield case(
            name,
            " ".join([requirement, *one.get("also", ())]),
            *chain.from_iterable(map(reader.read, filled(steps, known))),
            setup=_table(Setup, shared.named("setups", one.get("setup")), "setup"),
            shape=_table(Shape, shared.named("tables", one.get("table")), "table"),
            bind=one.get("bind"),
            engine=one.get("engine", ""),
            settings=shared.named("settings", one.get("settings")),
        )


def _table(kind: type[Any], given: Any, where: str) -> Any:
    return None if given is None else table(kind, nulls(given), where)


def _parts(given: Any) -> tuple[dict[str, Any], list[Any]]:
    """Return the conditions of a case, which are the tables at its beginning that are not steps, and its steps."""
    if not isinstance(given, list):
        raise TypeError("a case is a list of its conditions and steps")
    first = next((n for n, each in enumerate(given) if not isinstance(each, dict) or _is_step(each)), len(given))
    conditions: dict[str, Any] = {}
    for each in given[:first]:
        if fault := faults_of(each, CONDITIONS, "condition"):
            raise ValueError(
                f"{fault}: a condition is one of {', '.join(CONDITIONS)}, a step has one of {', '.join(FORMS)}"
            )
        if twice := [name for name in each if name in conditions and name not in _MERGED]:
            raise ValueError(f"{twice[0]} twice: write it once")
        conditions |= each | {name: conditions.get(name, {}) | each[name] for name in _MERGED if name in each}
    if first == len(given):
        raise ValueError("no steps: write at least one [request, reply]")
    return conditions, given[first:]


def _is_step(made: dict[str, Any]) -> bool:
    return not made.keys().isdisjoint({"steps", *FORMS})
