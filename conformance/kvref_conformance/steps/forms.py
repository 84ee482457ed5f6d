"""Steps as JSON, in the forms of `schema.json`.

A text is a string that is a template; where names are replaced, a list of strings and holes. A string has one character
a byte (latin-1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final, get_type_hints

from kvref_conformance.data.typed import faults_of
from kvref_conformance.steps import (
    EVERY_SECONDS,
    AwaitReply,
    AwaitSql,
    By,
    Crowd,
    Disconnect,
    Eventually,
    Logged,
    Mark,
    Pause,
    Reload,
    Restart,
    Send,
    Sql,
    StartRequest,
    StartSql,
    Tick,
    Watch,
)
from kvref_conformance.wire.frames import encode
from kvref_conformance.wire.template import FRESH, HOLE, NAME

if TYPE_CHECKING:
    from kvref.profiles import Profile
    from kvref_conformance.steps import Step
    from kvref_conformance.wire.template import Names

# A step that is repeated has the form of the inner one, with `within` and maybe `every`.
FORMS: Final = {
    "send": Send,
    "ask": StartRequest,
    "answer": AwaitReply,
    "sql": Sql,
    "sql start": StartSql,
    "sql end": AwaitSql,
    "mark binlog": Mark,
    "binlog": Logged,
    "hang up": Disconnect,
    "reload": Reload,
    "restart": Restart,
    "pause": Pause,
    "await second": Tick,
}
OF_RECORDINGS: Final = {"watch": Watch, "crowd": Crowd}
NAME_OF: Final = {kind: name for name, kind in (FORMS | OF_RECORDINGS).items()}
# In text they are what they are: memcached's usage line of delete has a <key>.
OF_FRAMES: Final = ("<value>", "<key>", "<pairs>")
# What the annotations of steps name, and modules import for type checkers only.
_NAMES: Final = {"Mapping": Mapping, "By": By, "Send": Send, "Sql": Sql}
_SECONDS: Final = frozenset({"patience", "within", "every", "seconds", "silent"})
# Lengths in templates: `{k:32}`, `{v~1024}`.
_SIZES: Final = re.compile(r"\{#?[a-z][a-z0-9_]*[:~](\d+)\}")
MAX_SECONDS: Final = 3600
MAX_DIGITS: Final = 7
MAX_SHOWN: Final = 60


class Writer:
    """Writes the steps of one case.

    Args:
        profile: answers what is allowed where endpoints may differ; None where nothing depends on a fact.
        names: of its keys, mappings and tables, which are replaced; None: texts stay templates.
    """

    def __init__(self, profile: Profile | None = None, names: Names | None = None) -> None:
        self._names = names
        self._profile = profile
        self._binary: dict[str, bool] = {}

    def step(self, step: Step) -> dict[str, Any]:
        """Return a step: one of the forms of `step` in schema.json, by its name."""
        if isinstance(step, Eventually):
            ((name, inner),) = self.step(step.step).items()
            every = {} if step.every == EVERY_SECONDS else {"every": step.every}
            return {name: {**inner, "within": step.within, **every}}
        return {NAME_OF[type(step)]: self._parts(step)}

    def _parts(self, step: Step) -> dict[str, Any]:
        if isinstance(step, Send):
            made = self._request(step.on, step.packets, binary=step.binary, cuts=step.cuts)
            made |= {"allow": self._allowed(step.allow, frames=step.binary), "patience": step.patience}
            return made | {name: True for name in ("quiet", "closes") if getattr(step, name)}
        if isinstance(step, StartRequest):
            return {**self._request(step.on, step.packets, binary=step.binary), "silent": step.silent}
        if isinstance(step, AwaitReply):
            allowed = self._allowed(step.allow, frames=self._binary.get(step.on, False))
            return {"on": step.on, "allow": allowed, "patience": step.patience}
        if isinstance(step, Sql):
            return self._sql(step)
        if isinstance(step, StartSql):
            silent = {"silent": step.silent} if step.silent else {}
            return {"on": step.on, "statement": self._text(step.statement), **silent}
        return {field.name: getattr(step, field.name) for field in fields(step)}

    def _request(
        self, on: str, packets: tuple[str, ...], *, binary: bool, cuts: tuple[int, ...] = ()
    ) -> dict[str, Any]:
        self._binary[on] = binary
        if not binary:
            return {"on": on, "packets": list(map(self._text, packets))}
        words = self._text("".join(packets))
        made: dict[str, Any] = {"on": on, "frames": words}
        if isinstance(words, str):
            return made | ({"cuts": cuts} if cuts else {})
        if all(isinstance(part, str) for part in words):
            data = encode("".join(words))
            made["hex"] = [data[a:b].hex() for a, b in zip((0, *cuts), (*cuts, len(data)), strict=True)]
        return made

    def _sql(self, step: Sql) -> dict[str, Any]:
        made: dict[str, Any] = {"on": step.on, "statement": self._text(step.statement)}
        if step.rows is not None:
            made["rows"] = [[self._cell(cell) for cell in row] for row in step.rows]
        return made | ({"refused": True} if step.refused else {})

    def _cell(self, cell: object) -> object:
        return self._text(cell) if isinstance(cell, str) else cell

    def _allowed(self, allow: tuple[str, ...] | By, *, frames: bool) -> list[str | list[Any]]:
        if isinstance(allow, By):
            assert self._profile is not None, "what is allowed depends on a fact"
            allow = allow.of(self._profile)
        return [self._text(text, frames=frames) for text in allow]

    def _text(self, template: str, *, frames: bool = False) -> str | list[Any]:
        if self._names is None:
            return template
        parts: list[Any] = []
        end = 0
        for hole in HOLE.finditer(template):
            if hole[0] in OF_FRAMES and not frames:
                continue
            named = self._named(template[end : hole.start()], self._names)
            parts += [*named, _hole(hole[0], hole[2], hole[3], new=bool(hole[1]))]
            end = hole.end()
        return [*parts, *self._named(template[end:], self._names)]

    def _named(self, template: str, names: Names) -> list[Any]:
        """Replace what is known, and leave `{"recall": name}` for what the run has caught before."""
        parts: list[Any] = []
        end = 0
        for name in NAME.finditer(template):
            if name[2] in names.texts or FRESH.fullmatch(name[2]) is not None:
                continue
            recalled: dict[str, Any] = {"recall": name[2]}
            before = template[end : name.start()]
            parts += [names.render(before)] if before else []
            parts.append(recalled | ({"length": True} if name[1] else {}))
            end = name.end()
        return [*parts, names.render(template[end:])] if template[end:] else parts


def _hole(written: str, number: str | None, name: str | None, *, new: bool) -> dict[str, Any]:
    hole: dict[str, Any] = {"hole": number or written.strip("<>")}
    hole |= {"name": name} if name else {}
    return hole | ({"new": True} if new else {})


def read(made: object, forms: Mapping[str, type[Step]] = FORMS) -> Step:
    """Return the step of a form whose texts are templates.

    Args:
        made: decoded JSON.
        forms: those that are known.

    Raises:
        ValueError: it is none, a field is missing, unknown or of another type, or it exceeds the limits of a case.
        TypeError: it is not JSON object, or cannot be repeated.
    """
    if not isinstance(made, dict) or len(made) != 1 or not made.keys() <= forms.keys():
        raise ValueError(f"{repr(made)[:MAX_SHOWN]} is not a step: a step is one of {', '.join(forms)}")
    ((name, given),) = made.items()
    if not isinstance(given, dict):
        raise TypeError(f"{name}: {repr(given)[:MAX_SHOWN]} is not a table")
    given, kind = dict(given), forms[name]
    repeated = {field: given.pop(field) for field in ("within", "every") if kind is not Watch and field in given}
    if "frames" in given and kind in (Send, StartRequest):
        given |= {"packets": [given.pop("frames")], "binary": True}
    step: Step = table(kind, given, name)
    if not repeated:
        return step
    if not isinstance(step, Send | Sql):
        raise TypeError(f"{repr(made)[:MAX_SHOWN]} cannot be repeated")
    check(repeated, Eventually, name)
    if "within" not in repeated:
        raise ValueError(f"{name}: no within")
    return Eventually(step, **repeated)


def table(kind: type[Any], given: object, where: str) -> Any:
    """Return a dataclass of a decoded JSON object; raises as `read`."""
    if not isinstance(given, dict):
        raise TypeError(f"{where}: {repr(given)[:MAX_SHOWN]} is not a table")
    check(given, kind, where)
    missing = [f.name for f in fields(kind) if f.default is MISSING and f.name not in given]
    if missing:
        raise ValueError(f"{where}: no {missing[0]}")
    return kind(**{name: _as_tuple(value) for name, value in given.items()})


def check(given: dict[str, Any], kind: type, where: str) -> None:
    """Raise ValueError if a field is unknown, of another type, or exceeds the time or memory limits of a case."""
    if fault := faults_of(given, _hints(kind), where):
        raise ValueError(fault)
    for name, value in given.items():
        if isinstance(value, float | int) and name in _SECONDS and not 0 <= value <= MAX_SECONDS:
            raise ValueError(f"{where}.{name}: {value}: write 0 to {MAX_SECONDS} seconds")
    for size in _SIZES.findall(json.dumps(given)):
        if len(size) > MAX_DIGITS:
            raise ValueError(f"{where}: a text of {size[:MAX_SHOWN]} characters is too long")


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind, localns=dict(_NAMES))


def _as_tuple(value: object) -> object:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value
