"""The JSON formats that kvref writes and reads, from their schemas."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from generators.markup import code, folded, pre, prose, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Package, file, what has the format.
SCHEMAS: Final = (
    ("kvref_bench.runs", "run.schema.json", "`run.json` of a folder that `kvref bench run` writes"),
    ("kvref_bench.scenario", "scenario.schema.json", "a scenario of `kvref bench run`, in TOML"),
    ("kvref_conformance.reports", "matrix.schema.json", "`kvref matrix --json FILE`"),
    ("kvref_conformance.reports.history", "history.schema.json", "`history.json` of `kvref matrix --history DIR`"),
    (
        "kvref_conformance.steps",
        "schema.json",
        "`kvref spec --cases FILE`, replay files of failures, and lines of recordings and scripts (`kvref record`)",
    ),
)


def pages() -> Mapping[str, str]:
    """Return the part of `reference/formats.md` that has a section for each schema."""
    return {"reference/generated/formats.txt": "\n\n".join(part for each in SCHEMAS for part in _section(*each)) + "\n"}


def _section(package: str, file: str, what: str) -> Iterator[str]:
    text = files(package).joinpath(file).read_text(encoding="utf-8")
    schema = json.loads(text)
    yield f"### {schema['title']}"
    yield f"Format of {what}. {prose(schema.get('description', ''))}"
    rows = list(_fields(schema))
    if rows:
        yield table(("field", "type", "meaning"), rows)
    yield folded(f"JSON schema: {package}/{file}", pre(json.dumps(schema, indent=1, ensure_ascii=False)))


def _fields(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    needed = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        kind = field.get("type") or ("constant" if "const" in field else field.get("$ref", "").rpartition("/")[2])
        kinds = " or ".join(kind) if isinstance(kind, list) else kind
        optional = "" if name in needed else ", optional"
        yield code(name), f"{kinds}{optional}", prose(field.get("description", ""))
