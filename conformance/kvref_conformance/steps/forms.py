"""Steps of a case as JSON. A text is a list of strings and holes; a string is bytes, one character each (latin-1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kvref_conformance.case import (
    Answers,
    Asks,
    By,
    Ends,
    Eventually,
    Hangup,
    Logged,
    Mark,
    Pause,
    Reload,
    Say,
    Sql,
    Starts,
    Tick,
)
from kvref_conformance.frames import encode
from kvref_conformance.template import FRESH, HOLE, NAME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvref.profiles import Profile
    from kvref_conformance.case import Step
    from kvref_conformance.template import Names

Text = list[Any]
# In text they are what they are: memcached's usage line of delete has a <key>.
OF_FRAMES: Final = ("<value>", "<key>", "<pairs>")


class Writer:
    """Writes the steps of one case.

    Args:
        names: of its keys, mappings and tables.
        profile: answers what is allowed where endpoints may differ.
    """

    def __init__(self, names: Names, profile: Profile) -> None:
        self._names = names
        self._profile = profile
        self._binary: dict[str, bool] = {}

    def step(self, step: Step) -> dict[str, Any]:
        """Return a step: one of the forms of `step` in schema.json, by its name."""
        if isinstance(step, Say):
            return {"send": self._say(step)}
        if isinstance(step, Asks):
            return {"ask": {**self._request(step.on, step.request, binary=step.binary), "silent": step.silent}}
        if isinstance(step, Answers):
            return {
                "answer": {
                    "on": step.on,
                    "allow": self._allowed(step.allow, frames=self._binary[step.on]),
                    "patience": step.patience,
                }
            }
        if isinstance(step, Eventually):
            ((name, inner),) = self.step(step.step).items()
            return {name: {**inner, "within": step.within}}
        if isinstance(step, Sql):
            return {"sql": self._sql(step)}
        if isinstance(step, Starts):
            return {"sql start": {"on": step.on, "statement": self._text(step.statement)}}
        if isinstance(step, Ends):
            return {"sql end": {"on": step.on, "refused": step.fails, "patience": step.patience}}
        if isinstance(step, Logged):
            return {"binlog": {"allow": list(step.allow)}}
        if isinstance(step, Hangup):
            return {"hang up": {"on": step.on, "how": step.how}}
        if isinstance(step, Pause):
            return {"pause": {"seconds": step.seconds}}
        return {{Reload: "reload", Mark: "mark binlog", Tick: "await second"}[type(step)]: {}}

    def _say(self, step: Say) -> dict[str, Any]:
        made = self._request(step.on, *step.pieces, binary=step.binary, cuts=step.cuts)
        made |= {"allow": self._allowed(step.allow, frames=step.binary), "patience": step.patience}
        made |= {"quiet": True} if step.quiet else {}
        return made | ({"closes": True} if step.closes else {})

    def _request(self, on: str, *pieces: str, binary: bool, cuts: tuple[int, ...] = ()) -> dict[str, Any]:
        self._binary[on] = binary
        if not binary:
            return {"on": on, "packets": list(map(self._text, pieces))}
        words = self._text("".join(pieces))
        made: dict[str, Any] = {"on": on, "frames": words}
        if all(isinstance(part, str) for part in words):
            data = encode("".join(words))
            made["hex"] = [data[a:b].hex() for a, b in zip((0, *cuts), (*cuts, len(data)), strict=True)]
        return made

    def _sql(self, step: Sql) -> dict[str, Any]:
        made: dict[str, Any] = {"on": step.on, "statement": self._text(step.statement)}
        if step.rows is not None:
            made["rows"] = [[self._cell(cell) for cell in row] for row in step.rows]
        return made | ({"refused": True} if step.fails else {})

    def _cell(self, cell: object) -> object:
        return self._text(cell) if isinstance(cell, str) else cell

    def _allowed(self, allow: tuple[str, ...] | By, *, frames: bool) -> list[Text]:
        texts: Iterable[str] = allow.of(self._profile) if isinstance(allow, By) else allow
        return [self._text(text, frames=frames) for text in texts]

    def _text(self, template: str, *, frames: bool = False) -> Text:
        parts: Text = []
        end = 0
        for hole in HOLE.finditer(template):
            if hole[0] in OF_FRAMES and not frames:
                continue
            parts += [*self._named(template[end : hole.start()]), _hole(hole[0], hole[2], hole[3], new=bool(hole[1]))]
            end = hole.end()
        return [*parts, *self._named(template[end:])]

    def _named(self, template: str) -> Text:
        """Replace what is known, and leave `{"recall": name}` for what the run has caught before."""
        parts: Text = []
        end = 0
        for name in NAME.finditer(template):
            if self._is_known(name[2]):
                continue
            recalled: dict[str, Any] = {"recall": name[2]}
            parts += [*self._plain(template[end : name.start()]), recalled | ({"length": True} if name[1] else {})]
            end = name.end()
        return [*parts, *self._plain(template[end:])]

    def _plain(self, template: str) -> Text:
        return [self._names.render(template)] if template else []

    def _is_known(self, name: str) -> bool:
        return name in self._names.texts or FRESH.fullmatch(name) is not None


def _hole(written: str, number: str | None, name: str | None, *, new: bool) -> dict[str, Any]:
    hole: dict[str, Any] = {"hole": number or written.strip("<>")}
    hole |= {"name": name} if name else {}
    return hole | ({"new": True} if new else {})
