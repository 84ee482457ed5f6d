"""The literal cases of the suite for one profile, with the names that they use."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from kvref import profiles
from kvref.specification import deviations, requirements
from kvref_conformance import __version__
from kvref_conformance.cases import all_cases
from kvref_conformance.sql.base import DEMO_COLUMNS
from kvref_conformance.steps.forms import Writer
from kvref_conformance.wire.template import Names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kvref.profiles import Profile
    from kvref.specification.requirements import Requirement
    from kvref_conformance.case import Case

FORMAT: Final = 1
TABLES: Final = {"t1": "kvc_one", "t2": "kvc_two", "t3": "kvc_three"}
MAPPINGS: Final = {"m1": "t1", "m1b": "t1", "m2": "t2", "q": "t3"}
MISSING: Final = "kvc_missing"  # a table that is not there
CONFIGURATION: Final = ("containers", "options", "policies")


def as_json(wanted: Mapping[str, Requirement], profile: str) -> str:
    """Return the literal cases that apply to a profile, as `schema.json` has them.

    Args:
        wanted: requirements by ID; a case is written where all of its own are among them.
        profile: name of one.
    """
    facts = profiles.load(profile)
    names = _names()
    made = {
        "format": FORMAT,
        "suite": __version__,
        "profile": profile,
        "mappings": {names[mapping]: names[table] for mapping, table in MAPPINGS.items()},
        "columns": DEMO_COLUMNS,
        "requirements": {name: each.statement for name, each in wanted.items() if each.applies_to(profile)},
        "cases": [case for case in _cases(facts) if wanted.keys() >= set(case["requirements"])],
    }
    return json.dumps(made, indent=1) + "\n"


def _cases(profile: Profile) -> Iterator[dict[str, Any]]:
    catalogue, rows, numbers = requirements.load(), deviations.load(profile.name), count(1)
    for case in all_cases():
        applies = all(catalogue[name].applies_to(profile.name) for name in case.requirements)
        if not case.steps or not applies or (case.needs_mappings() and not profile.flag("mapping.supported")):
            continue
        number = next(numbers)
        names = Names(_names(), lambda name, number=number: f"c{number}{name}")  # type: ignore[misc]
        if case.shape is not None:
            names.texts |= {"m": f"kvm1s{number}", "t": f"kvc_one_{number}"}
        row = rows.of(case.id, case.requirements)
        yield {
            "case": case.id,
            "requirements": list(case.requirements),
            "needs": list(_needs(case)),
            **_conditions(case, names),
            **({"deviates": row.reason} if row is not None else {}),
            "steps": list(map(Writer(profile, names).step, case.steps)),
        }


def _needs(case: Case) -> Iterator[str]:
    """Yield the features that a case needs from an endpoint, in addition to a reply on its port."""
    if case.needs_mappings():
        yield "mappings"
    if case.needs_sql():
        yield "sql"
    if case.flushes:
        yield "flush"
    if case.settings is not None:
        yield "settings"
    if case.engine:
        yield case.engine


def _conditions(case: Case, names: Names) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if case.needs_mappings() and case.bind in names.texts:
        made["bind"] = names[case.bind]
    if case.settings is not None:
        made["settings"] = dict(case.settings)
    if case.setup is not None:
        rows = case.setup.containers
        tables = rows and [(name, names.texts.get(table or "", MISSING)) for name, table in rows]
        made["setup"] = {**asdict(case.setup), "containers": tables}
    if case.shape is not None:
        columns = case.shape.columns
        shape = {**asdict(case.shape), "columns": columns.format_map(names.texts) if "{" in columns else columns}
        made["table"] = {"mapping": names["m"], "name": names["t"], **shape}
    return made


def _names() -> dict[str, str]:
    names = {**TABLES, **{mapping: f"kv{mapping}" for mapping in MAPPINGS if mapping != "q"}, "q": "q"}
    names |= {f"w{table[1]}": f"test/{name}" for table, name in TABLES.items()}
    names |= {"w249": f"@@{names['m2']}.".ljust(249, "x"), "m2up": names["m2"].upper(), "m2cut": names["m2"][:-1]}
    configuration = ("containers", "config_options", "cache_policies")
    return names | {name: f"innodb_memcache.{table}" for name, table in zip(CONFIGURATION, configuration, strict=True)}
