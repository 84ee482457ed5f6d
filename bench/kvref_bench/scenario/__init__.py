"""Scenarios: the experiments of the articles, one commented TOML file each.

    scenario.names()
    scenario.load("ro-1m-int", "laptop", ["measure=2", "sessions=1,8", "work.depth=16"])

Reading path: `files` (the scenarios), `scenario.schema.json` (what may stand in one), `document` (scales, values set by
hand), `build` and `records` (what it means).
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvref import documents
from kvref.documents import DocumentError
from kvref.errors import choices
from kvref_bench.errors import BenchError
from kvref_bench.scenario.build import build
from kvref_bench.scenario.document import SCALES, resolve
from kvref_bench.scenario.records import Scenario, Series, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SCALES", "Scenario", "Series", "Table", "load", "names"]

_FOLDER: Final = Path(__file__).with_name("files")


def names() -> tuple[str, ...]:
    """Name the scenarios that come with the benchmark."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def load(name_or_path: str, scale: str = "laptop", overrides: Sequence[str] = ()) -> Scenario:
    """Read a scenario for a scale.

    Args:
        name_or_path: one of `names()`, or the path of a TOML file.
        scale: `small`, `laptop` or `full`.
        overrides: values set by hand, `key=value`, with points between the parts of a key: `table.keys.count=1000`;
            those of `work` are for every series.

    Raises:
        BenchError: no such scenario or scale, or a key or a value in it that is not possible.
    """
    path = Path(name_or_path)
    if name_or_path in names():
        path = _FOLDER / f"{name_or_path}.toml"
    elif path.suffix != ".toml":
        raise BenchError(f"no scenario {name_or_path!r}{choices(name_or_path, names())}, or name a .toml file")
    try:
        content = documents.read_bytes(path, documents.MAX_TOML_BYTES)
    except DocumentError as error:
        raise BenchError(f"scenario {name_or_path}: {error}; name a file that can be read") from error
    except OSError as error:
        raise BenchError(f"scenario {name_or_path}: {error.strerror}; name a file that can be read") from error
    document = resolve(content, path.name, scale, overrides)
    known = "\n".join([scale, *overrides]).encode()
    made = build(path.stem, document, path.name, path.resolve().parent)
    return replace(made, scale=scale, sha256=hashlib.sha256(content + b"\n" + known).hexdigest())
