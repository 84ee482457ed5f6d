"""The requirements of a client, read from requirements.toml."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from kvref_conformance.clients.faults import Fault
from kvref_conformance.clients.server import Entry
from kvref_conformance.clients.store import Item, Store
from kvref_conformance.data.tables import rows

PATH: Final = Path(__file__).with_name("requirements.toml")
PROTOCOLS: Final = ("text", "binary", "meta")
LEVELS: Final = ("MUST", "SHOULD")
# Results that a requirement may permit for its last call, besides others.
RIGHT: Final = "right"
RAISED: Final = "raised"
MISS: Final = "miss"
# In the options of `connect`: the file with the certificate of the authority that the client trusts.
CA: Final = "$ca"
ALLOWED: Final = (RIGHT, RAISED, MISS)
_ITEMS: Final[dict[str, dict[str, Any]]] = {
    "first": {"value": "one"},
    "second": {"value": "two"},
    "number": {"value": "5"},
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement and how it is judged.

    Args:
        id: such as KC-SPLIT-001; the middle word is its group.
        level: MUST or SHOULD.
        statement: in RFC 2119 prose.
        source: document that it follows from.
        protocols: to which it applies.
        calls: in their order; `$cas` is the token of the last `gets`.
        right: the right result of each; None is a miss, `$KEY` the value of the initial item.
        allowed: permitted results of the last call.
        items: initial items, with changes of the usual ones; `repeat` multiplies a value.
        fault: armed before the last call; None: the server is honest.
        recovers: a later call must be right within some seconds.
        whole_keys: no fragment of the key of the last call may reach the server as a key.
        tls: the client connects by TLS; the server's `certificate`, and whether it
            `requires_certificate` of the client.
        credentials: user and password of the client.
        accepted: user and password that the server accepts; empty: those of the client.
        sends_nothing: the server receives nothing but what belongs to the handshake.
        hides: no error text has the password.
    """

    id: str
    level: str
    statement: str
    source: str
    protocols: tuple[str, ...]
    calls: tuple[list[Any], ...]
    right: tuple[Any, ...]
    allowed: tuple[str, ...]
    items: dict[str, dict[str, Any]]
    fault: Fault | None
    recovers: bool = False
    whole_keys: bool = False
    tls: dict[str, Any] = field(default_factory=dict)
    credentials: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    sends_nothing: bool = False
    hides: bool = False

    @property
    def group(self) -> str:
        """Return the group, such as SPLIT."""
        return self.id.split("-")[1]

    @property
    def options(self) -> dict[str, Any]:
        """Return the options of the call `connect`: `ca`, and user and password as `credentials`."""
        ca = {"ca": CA} if self.tls else {}
        return ca | ({"credentials": list(self.credentials)} if self.credentials else {})

    @property
    def entry(self) -> Entry:
        """Return what the server requires before the first command."""
        accepted = self.accepted or self.credentials
        return Entry(**self.tls, credentials=(accepted[0], accepted[1]) if accepted else None)

    def store(self) -> Store:
        """Return the server's items at the start."""
        return Store(
            {
                key.encode("latin-1"): Item(_value(row).encode("latin-1"), row.get("flags", 0), int(row.get("cas", 1)))
                for key, row in self.items.items()
            }
        )

    def expected(self, place: int) -> Any:
        """Return the right result of a call."""
        return self._filled(self.right[place])

    def _filled(self, result: Any) -> Any:
        if isinstance(result, dict):
            return {key: self._filled(each) for key, each in result.items()}
        if isinstance(result, str) and result.startswith("$"):
            return _value(self.items[result[1:]])
        return None if result == MISS else result


def _value(row: dict[str, Any]) -> str:
    return str(row["value"]) * int(row.get("repeat", 1))


@cache
def load() -> tuple[Requirement, ...]:
    """Return all requirements in their order."""
    return tuple(_requirement(row) for row in rows(PATH, "requirement", object))


def _requirement(row: dict[str, Any]) -> Requirement:
    listed = ("protocols", "calls", "right", "allowed", "credentials", "accepted")
    fields = row | {name: tuple(row[name]) for name in listed if name in row}
    fault = None if "fault" not in row else _fault(row["fault"])
    return Requirement(**fields | {"items": _ITEMS | row.get("items", {}), "fault": fault})


def _fault(row: dict[str, Any]) -> Fault:
    return Fault(**row | {name: tuple(row[name]) for name in ("change", "remove", "order") if name in row})
