"""A scenario file: what its scale and what is set by hand change, the check of each key, and the records it means.

`scenario.schema.json` says what may stand in a file.
"""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jsonschema

from kvref import documents
from kvref.documents import DocumentError
from kvref.errors import choices
from kvref_bench.errors import BenchError
from kvref_bench.load.clients import DRIVERS
from kvref_bench.load.work import Keys, Values, Work
from kvref_bench.scenario.records import Scenario, Series, Table
from kvref_bench.workload import check as check_work
from kvref_bench.workload.keys import PARAMETERS, read_file
from kvref_bench.workload.trace import positions, read_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

Document = dict[str, Any]
SCALES: Final = ("small", "laptop", "full")
WIRE: Final = "wire"
_FOLDER: Final = Path(__file__).with_name("files")
_LISTS: Final = ("sessions", "rates")
_MOST_INT: Final = 2**31 - 1


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


def resolve(content: bytes, where: str, scale: str, overrides: Sequence[str]) -> Document:
    """Return the document of a scale, each key checked; its series are a list.

    content: of the file; where: its name for errors. overrides: `key=value`, the key with points between its parts.

    Raises:
        BenchError: no TOML, an unknown key or scale, a value that is not possible; with what is.
    """
    if scale not in SCALES:
        raise BenchError(f"scale {scale!r}: possible: {', '.join(SCALES)}")
    try:
        document: Document = documents.toml_of(content.decode())
    except ValueError as error:
        raise BenchError(f"{where}: no TOML: {error}") from error
    check(document, where)
    series, scales = document.pop("series"), document.pop("scale")
    named = {each["name"]: each for each in series}
    if len(named) < len(series):
        raise BenchError(f"{where}: two series have one name: {', '.join(each['name'] for each in series)}")
    chosen = scales[scale]
    for name, changes in chosen.pop("series", {}).items():
        _known(name, named, where)
        named[name] = merge(named[name], changes)
    document = merge(document, chosen)
    for each in overrides:
        document = _set(document, named, each)
    check({**document, "series": list(named.values()), "scale": scales}, f"{where}, {', '.join(overrides)}")
    for name in document.get("only", ()):
        _known(name, named, where)
    document["series"] = [each for name, each in named.items() if name in document.get("only", named)]
    document.pop("only", None)
    return document


def merge(below: Document, above: Document) -> Document:
    """Lay one document over another: tables of known keys are merged, everything else is replaced."""
    merged = copy.deepcopy(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both and key in ("table", "work", "keys", "values") else value
    return merged


@cache
def schema() -> Document:
    """Return the JSON Schema of a scenario file."""
    found: Document = json.loads((files(__package__) / "scenario.schema.json").read_text(encoding="utf-8"))
    return found


@cache
def _validator() -> Any:
    # JSON Schema takes 1.0 for an integer.
    kinds = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, given: isinstance(given, int) and not isinstance(given, bool)
    )
    extend: Any = jsonschema.validators.extend
    return extend(jsonschema.Draft202012Validator, type_checker=kinds)(schema())


def check(document: Document, where: str) -> None:
    """Raise BenchError, naming the first field at fault, unless a document keeps to the schema."""
    error = jsonschema.exceptions.best_match(_validator().iter_errors(document))
    if error is None:
        return
    path = ".".join(map(str, error.absolute_path))
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = sorted(error.schema["properties"])
        unknown = next(str(key) for key in error.instance if key not in known)
        name = f"{path}.{unknown}".lstrip(".")
        raise BenchError(f"{where}: {name}: there is no such key{choices(unknown, known)}")
    raise BenchError(f"{where}: {path}: {error.message[:300]}")


def _known(name: str, named: Document, where: str) -> None:
    if name not in named:
        raise BenchError(f"{where}: no series {name!r}; possible: {', '.join(named)}")


def _set(document: Document, named: Document, override: str) -> Document:
    path, equals, given = override.partition("=")
    if not equals:
        raise BenchError(f"{override!r}: write KEY=VALUE, for example measure=2")
    parts = path.strip().split(".")
    value = _value(given.strip(), _schema_of(parts).get("type") == "array")
    if parts[0] == "series":
        _known(parts[1] if len(parts) > 1 else "", named, override)
        named[parts[1]] = _put(named[parts[1]], parts[2:], value)
        return document
    if parts[0] == "work":
        # What is set for all series is meant for those too that have it themselves.
        for name, each in named.items():
            if parts[1:2] and parts[1] in each:
                named[name] = _put(each, parts[1:], value)
    changed: Document = _put(document, parts, value)
    return changed


def _put(below: Any, parts: Sequence[str], value: Any) -> Any:
    """Return a copy of a document with the value at a path."""
    if not parts:
        return value
    under: Document = below if isinstance(below, dict) else {}
    return {**under, parts[0]: _put(under.get(parts[0]), parts[1:], value)}


def _schema_of(parts: Sequence[str]) -> Document:
    """Return the schema of the value at a path; an empty one for a path that there is not."""
    at: Any = schema()["$defs"]["scale"]
    for part in parts:
        at = at.get("properties", {}).get(part) or at.get("additionalProperties") or {}
        if "$ref" in at:
            at = schema()["$defs"][at["$ref"].rpartition("/")[2]]
    found: Document = at
    return found


def _value(given: str, many: bool) -> Any:
    """Read a value set by hand; many: it is a list, whose brackets may be left out, as quotes of words may."""
    many = many and not given.startswith("[")
    for form in (f"[{given}]",) if many else (given, f"[{given}]"):
        try:
            return documents.toml_of(f"value = {form}")["value"]
        except DocumentError:
            continue
    return [each.strip() for each in given.split(",")] if many else given


def build(name: str, document: Document, where: str, folder: Path) -> Scenario:
    """Make the records of a scenario.

    where: its file, for errors. folder: of the file, from which files of keys are named.

    Raises:
        BenchError: something is missing, or parts do not go together.
    """
    if "sessions" not in document:
        raise BenchError(f"{where}: it has no sessions")
    given = {key: value for key, value in document.items() if key not in ("table", "work", "series")}
    fields: dict[str, Any] = {key: tuple(value) if key in _LISTS else value for key, value in given.items()}
    hits = given.get("hits", 1.0)
    fields |= {"settings": _settings(given.get("settings", {})), "hits": None if hits == "unknown" else hits}
    table = _table(document["table"], where, folder)
    made = Scenario(
        name=name,
        table=table,
        series=tuple(_series(each, document, table, where, folder) for each in document["series"]),
        **fields,
    )
    problem = _problem(made)
    if problem:
        raise BenchError(f"{where}: {problem}")
    return made


def _problem(scenario: Scenario) -> str | None:
    if scenario.kind == "lag" and not scenario.trials:
        return "trials: kind = 'lag' needs at least 1"
    for each in scenario.series:
        keys = each.work.keys
        if keys.distribution == "own" and not scenario.fresh:
            return f"series {each.name!r}: the keys of the distribution own must not be there yet; set fresh = true"
        named = keys.count * (2 if keys.missing else 1)
        if keys.distribution == "own" and each.work.operations is not None:
            most = max(each.sessions or scenario.sessions)
            named += most * each.work.operations * each.work.multiget
        if keys.shape == "int" and named > _MOST_INT:
            return f"series {each.name!r}: it names {named} keys; an INT column has {_MOST_INT}"
    return None


def _settings(given: dict[str, list[int]]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(values) for name, values in given.items()}


def _table(given: Document, where: str, folder: Path) -> Table:
    for key in ("name", "mapping", "keys"):
        if key not in given:
            raise BenchError(f"{where}: table: it has no {key}")
    others = {key: value for key, value in given.items() if key not in ("keys", "values")}
    keys = _keys({}, given["keys"], where, folder)
    return Table(keys=keys, values=_values(given.get("values", {}), keys), **others)


def _keys(drawn: Document, of_table: Document, where: str, folder: Path) -> Keys:
    both: dict[str, Any] = {**of_table, **drawn}
    if "file" in both:
        both["file"] = str((folder / both["file"]).resolve())
        traced = both.get("distribution") == "trace"
        both["count"] = len(read_trace(both["file"]).keys if traced else read_file(both["file"]))
    elif "count" not in both:
        raise BenchError(f"{where}: table.keys: it has no count")
    if "file" in both and "distribution" not in both:
        both["distribution"] = "file"
    known = PARAMETERS.get(both.get("distribution", "uniform"), {})
    for name in both.get("parameters", {}):
        if name not in known:
            possible = ", ".join(known) or "none"
            raise BenchError(f"{where}: keys.parameters.{name}: there is no such parameter; possible: {possible}")
    return Keys(**both)


def _values(given: Document, keys: Keys) -> Values:
    if keys.distribution == "trace" and keys.file is not None and "sizes" not in given:
        return Values(sizes=(0, max(read_trace(keys.file).sizes.values())), trace=keys.file, **given)
    sizes = given.get("sizes", 100)
    others = {key: value for key, value in given.items() if key != "sizes"}
    low, high = sizes if isinstance(sizes, list) else (sizes, sizes)
    if low > high:
        raise BenchError(f"table.values.sizes = {sizes}: the smallest comes first")
    return Values(sizes=(low, high), **others)


def _series(given: Document, document: Document, table: Table, where: str, folder: Path) -> Series:
    merged = merge(
        document.get("work", {}),
        {key: value for key, value in given.items() if key in schema()["$defs"]["work"]["properties"]},
    )
    over_sql = given["over"] == "sql"
    # What all series have in common may be of memcached alone.
    protocol = given.get("protocol", "mysql" if over_sql else merged.get("protocol", "text"))
    here = f"{where}: series {given['name']!r}"
    if (protocol == "mysql") != over_sql:
        raise BenchError(f"{here}: over = {given['over']!r} with protocol = {protocol!r}; mysql is over sql")
    # A connection goes to the mapping when it is opened, so that a user's own default mapping stays what it is.
    merged["route"] = given.get("route", "none") if over_sql else merged.get("route", "switch")
    if "verbs" not in merged:
        raise BenchError(f"{here}: it has no verbs, and work has none")
    keys = _keys(merged.pop("keys", {}), document["table"]["keys"], here, folder)
    if keys.distribution == "trace" and keys.file is not None:
        # The whole trace, before the sessions begin again.
        merged.setdefault("pool", max(1, len(positions(keys.file, frozenset(merged["verbs"])))))
    work = Work(**merged | {"protocol": protocol, "keys": keys, "values": table.values, "mapping": table.mapping})
    if work.driver not in (WIRE, *DRIVERS):
        raise BenchError(f"{here}: driver = {work.driver!r}: possible: {WIRE}, {', '.join(DRIVERS)}")
    try:
        check_work(work)
    except BenchError as error:
        raise BenchError(f"{here}: {error}") from error
    return Series(
        name=given["name"],
        over=given["over"],
        work=work,
        sessions=tuple(given["sessions"]) if "sessions" in given else None,
        settings=_settings(given["settings"]) if "settings" in given else None,
        needs_table=given.get("needs_table", False),
    )
