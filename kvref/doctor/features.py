"""From a mapping to the requirements it depends on: predicates find features, `features.toml` names requirements.

Nothing is listed for a row by hand; a requirement is shown where it applies to the profile.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from kvref.doctor.predicates import KEYS, TABLES, VALUES
from kvref.errors import ConfigError
from kvref.specification import deviations, requirements
from kvref.specification.deviations import defects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kvref.doctor.predicates import Subject
    from kvref.specification.requirements import Requirement

SCOPES: Final = ("mapping", "configuration", "refusal")
OWN: Final = "kvref"
# A feature's name -> the columns, tables or names in which a mapping has it; none where it has not.
PREDICATES: Final = {**KEYS, **VALUES, **TABLES}


@dataclass(frozen=True, slots=True)
class Feature:
    """One row of `features.toml`.

    Args:
        scope: one of SCOPES.
        name: of the predicate, or the rule of a `RowError`.
        title: in plain words.
        requirements: ids.
        warning: the summary warns of it whatever the profile.
    """

    scope: str
    name: str
    title: str
    requirements: tuple[str, ...]
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Citation:
    """A requirement as it counts for a profile.

    Args:
        requirement: of the catalogue.
        defects: kinds of the defects that the profile has there, such as "lost write".
        deviations: what the profile is known to do instead.
    """

    requirement: Requirement
    defects: tuple[str, ...] = ()
    deviations: tuple[str, ...] = ()

    @property
    def ends_the_server(self) -> bool:
        """Return whether the C plugin takes mysqld down here."""
        return defects.CRASH in self.defects


@dataclass(frozen=True, slots=True)
class Finding:
    """A feature that is there.

    Args:
        feature: which.
        where: names of columns, tables, options or rows that have it.
        citations: requirements of the profile.
        instead: requirements that only profile `kvref` has there; none where that is the profile.
    """

    feature: Feature
    where: tuple[str, ...]
    citations: tuple[Citation, ...]
    instead: tuple[Citation, ...]


@cache
def load() -> Mapping[tuple[str, str], Feature]:
    """Load the table by scope and name.

    Raises:
        ConfigError: an unknown scope, a field that is missing, or an id that no requirement has.
    """
    tables: dict[str, Any] = tomllib.loads(files(__package__).joinpath("features.toml").read_text(encoding="utf-8"))
    found = {}
    for scope, rows in tables.items():
        if scope not in SCOPES:
            raise ConfigError(f"features.toml: scope {scope!r} is none of {', '.join(SCOPES)}")
        for name, row in rows.items():
            if row.keys() - {"warning"} != {"title", "requirements"}:
                raise ConfigError(f"features.toml, {scope}.{name}: `title` and `requirements` are needed")
            if unknown := set(row["requirements"]) - requirements.load().keys():
                raise ConfigError(f"features.toml, {scope}.{name}: no requirement {', '.join(sorted(unknown))}")
            found[scope, name] = Feature(
                scope, name, row["title"], tuple(row["requirements"]), row.get("warning", False)
            )
    return found


def of_mapping(subject: Subject, profile: str) -> tuple[Finding, ...]:
    """Return the features of a mapping, in the order of `features.toml`."""
    return found("mapping", lambda name: dict.fromkeys(PREDICATES[name](subject)), profile)


def found(scope: str, where_of: Callable[[str], Iterable[str]], profile: str) -> tuple[Finding, ...]:
    """Return the features of a scope that are there and mean something to a profile, in the order of `features.toml`.

    Args:
        scope: one of SCOPES.
        where_of: returns the names that have the feature with a name, none if it is not there.
        profile: name of the profile.
    """
    features = {feature: tuple(where_of(name)) for (of, name), feature in load().items() if of == scope}
    findings = (finding(feature, where, profile) for feature, where in features.items() if where)
    return tuple(each for each in findings if each.citations or each.instead)


def refusal(rule: str, profile: str) -> tuple[Finding, ...]:
    """Return why a profile refuses a row, by the rule of its fault."""
    feature = load().get(("refusal", rule))
    return () if feature is None else (finding(feature, (), profile),)


def finding(feature: Feature, where: tuple[str, ...], profile: str) -> Finding:
    """Choose what a profile has of a feature's requirements."""
    rows = [requirements.load()[identifier] for identifier in feature.requirements]
    own = [row for row in rows if profile != OWN and row.applies_to(OWN) and not row.applies_to(profile)]
    return Finding(
        feature,
        where,
        tuple(
            Citation(row, _kinds(profile).get(row.id, ()), _deviations(row.id, profile))
            for row in rows
            if row.applies_to(profile)
        ),
        tuple(Citation(row) for row in own),
    )


@cache
def _deviations(requirement: str, profile: str) -> tuple[str, ...]:
    known = deviations.load(profile).rows
    subjects = (requirement, *deviations.cases_of(requirement))
    return tuple(dict.fromkeys(known[each].reason for each in subjects if each in known))


@cache
def _kinds(profile: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for defect in defects.of(profile):
        found[defect.requirement] = (*found.get(defect.requirement, ()), defect.kind)
    return found
