"""From a checked document to the records of a scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kvref_bench.errors import BenchError
from kvref_bench.load.clients import DRIVERS
from kvref_bench.load.work import Keys, Values, Work
from kvref_bench.scenario.document import merge, schema
from kvref_bench.scenario.records import Scenario, Series, Table
from kvref_bench.workload import check
from kvref_bench.workload.keys import PARAMETERS, read_file
from kvref_bench.workload.trace import positions, read_trace

if TYPE_CHECKING:
    from pathlib import Path

    from kvref_bench.scenario.document import Document

_LISTS: Final = ("sessions", "rates")
WIRE: Final = "wire"
_MOST_INT: Final = 2**31 - 1


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
    known = PARAMETERS[both.get("distribution", "uniform")]
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
        check(work)
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
