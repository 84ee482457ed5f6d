"""The rows and columns of the table, read from the TOML files in this folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, NotRequired, TypedDict

from kvref_conformance.data.tables import tables

HERE: Final = Path(__file__).parent
SCRIPTS: Final = HERE / "scripts"


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature that every client is tested for; see features.toml."""

    id: str
    title: str
    verbs: tuple[str, ...]
    calls: str
    comes: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Client:
    """One row; see clients.toml."""

    id: str
    name: str
    kit: str
    script: str
    protocol: str
    through: str = ""

    @property
    def title(self) -> str:
        """Return the row's head, such as `pylibmc, binary`."""
        return f"{self.name}, {self.protocol}" + (f", through {self.through}" if self.through else "")

    @property
    def path(self) -> Path:
        """Return the script."""
        return SCRIPTS / self.kit / self.script


class _Feature(TypedDict):
    title: str
    verbs: tuple[str, ...]
    calls: str
    comes: tuple[object, ...]


class _Client(TypedDict):
    name: str
    kit: str
    script: str
    protocol: str
    through: NotRequired[str]


def features() -> dict[str, Feature]:
    """Return the features by id, in the order of the table."""
    return {
        key: Feature(
            key,
            row["title"],
            tuple(row["verbs"]),
            row["calls"],
            tuple(None if each == "null" else each for each in row["comes"]),
        )
        for key, row in tables(HERE / "features.toml", _Feature).items()
    }


def clients() -> dict[str, Client]:
    """Return the clients by id, in the order of the table."""
    return {key: Client(key, **row) for key, row in tables(HERE / "clients.toml", _Client).items()}
