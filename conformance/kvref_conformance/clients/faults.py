"""Faults of a reply: changes of its units, and how its bytes reach the client."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final

from kvref_conformance.clients.binary import Frame
from kvref_conformance.clients.text import Meta, Raw, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    Unit = Raw | Row | Meta | Frame

EARLY: Final = frozenset({"connect", "handshake", "auth", "sasl_list"})


@dataclass(frozen=True, slots=True)
class Fault:
    """What the server does to a reply; numbers of units begin at 0, negative ones count from the end.

    Args:
        on: verb of the command whose reply is changed; `key`: the first command with a key; `auth`: the command
            with the credentials; `connect`: the connection itself; `handshake`: the server's first bytes of TLS.
        times: number of replies or connections that are changed.
        change: for each unit its number as `unit` and new values of fields; in the flags of a meta reply
            `{flags}` means the honest ones, and `reversed` turns their order; `opaque_of` is the number of the unit
            whose opaque is used, for frames with a key.
        copy: a unit to add: `unit`, the number `at` which it is inserted, and new values of fields.
        remove: units to leave out.
        order: new order of the first units, by their numbers.
        put: bytes to insert: `at` and `text`.
        text: bytes that replace the whole reply.
        after: bytes sent behind the reply in the same segment.
        twice: the reply is sent twice.
        apart: `after` or the second reply is sent in its own segment, when the client has its result.
        split: the reply is sent in segments of so many bytes.
        wait: delay before the reply, in multiples of the client's timeout.
        wait_at: bytes that are sent before this delay.
        keep: bytes to send (negative: less than all); then the connection is closed.
        close: close the connection `before` or `after` the reply.
        reset: close it by a reset.
        silent: no reply; the connection remains open.
        loud: a quiet command is answered as if it were not quiet.
        at_once: the reply to a quiet command is sent before the next command.
        records: what happens to the reply's records of TLS; see `tls.RECORDS`.
    """

    on: str = "key"
    times: int = 1
    change: tuple[dict[str, Any], ...] = ()
    copy: dict[str, Any] = field(default_factory=dict)
    remove: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    put: dict[str, Any] = field(default_factory=dict)
    text: str | None = None
    after: str = ""
    twice: bool = False
    apart: bool = False
    split: int = 0
    wait: float = 0
    wait_at: int = 0
    keep: int | None = None
    close: str = ""
    reset: bool = False
    silent: bool = False
    loud: bool = False
    at_once: bool = False
    records: str = ""

    def fits(self, units: Sequence[Unit]) -> bool:
        """Return whether a reply has the units that are changed, copied or moved."""
        named = [*self.order, *(row[name] for row in self.change for name in ("unit", "opaque_of") if name in row)]
        if self.copy:
            named.append(self.copy["unit"])
        return all(-len(units) <= place < len(units) for place in named)

    @property
    def early(self) -> bool:
        """Return whether it belongs to what a client may do when it connects."""
        return self.on in EARLY

    def segments(self, units: Sequence[Unit]) -> list[bytes]:
        """Return the changed reply in the segments that are sent.

        Args:
            units: of the honest reply; it `fits`.
        """
        data = self._bytes(units)
        if self.keep is not None:
            data = data[: self.keep]
        if self.silent or self.close == "before":
            data = b""
        if self.apart:
            first = len(data) // 2 if self.twice else len(data) - len(self.after)
            return [data[:first], data[first:]]
        size = self.split or len(data) or 1
        if self.wait:
            return [each for each in (data[: self.wait_at], data[self.wait_at :]) if each]
        return [data[start : start + size] for start in range(0, len(data), size)]

    @property
    def ends(self) -> bool:
        """Return whether the connection is closed afterwards."""
        return self.keep is not None or bool(self.close) or self.reset

    def _bytes(self, units: Sequence[Unit]) -> bytes:
        if self.text is not None:
            data = self.text.encode("latin-1")
        else:
            data = b"".join(unit.render() for unit in self._edited(list(units)))
        data += self.after.encode("latin-1")
        return data * 2 if self.twice else data

    def _edited(self, units: list[Unit]) -> list[Unit]:
        honest = list(units)
        for row in self.change:
            units[row["unit"]] = _changed(units[row["unit"]], row | _opaque(honest, row))
        if self.copy:
            units.insert(self.copy["at"], _changed(units[self.copy["unit"]], self.copy))
        if self.order:
            units[: len(self.order)] = [units[place] for place in self.order]
        units = [unit for place, unit in enumerate(units) if place not in self.remove]
        if self.put:
            place = self.put["at"] if self.put["at"] >= 0 else len(units) + 1 + self.put["at"]
            units.insert(place, Raw(self.put["text"].encode("latin-1")))
        return units


def _opaque(units: Sequence[Unit], row: dict[str, Any]) -> dict[str, Any]:
    """Return the opaque of another frame; none for a frame without a key, which only its opaque names."""
    unit, other = units[row["unit"]], units[row.get("opaque_of", row["unit"])]
    return {"opaque": other.opaque} if isinstance(unit, Frame) and unit.key and isinstance(other, Frame) else {}


def _changed(unit: Unit, row: dict[str, Any]) -> Unit:
    if isinstance(unit, Meta):
        flags = unit.flags.split()
        row = row | {"flags": row.get("flags", "{flags}").replace("{flags}", unit.flags.decode("latin-1"))}
        row = row | ({"flags": b" ".join(reversed(flags))} if row.get("reversed") else {})
    known = {each.name: each.type for each in fields(unit)}
    values = {name: v.encode("latin-1") if isinstance(v, str) else v for name, v in row.items() if name in known}
    unit_of_any_kind: Any = unit
    # A field such as `status` has another type in another protocol, which the fault is not made for.
    changed: Unit = replace(
        unit_of_any_kind, **{name: v for name, v in values.items() if type(v).__name__ in str(known[name])}
    )
    return changed
