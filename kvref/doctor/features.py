"""From a mapping to the requirements it depends on: predicates find features, `features.toml` names requirements.

Nothing is listed for a row by hand; a requirement is shown where it applies to the profile.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from kvref.errors import ConfigError
from kvref.specification import deviations, requirements
from kvref.specification.deviations import defects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kvref.specification.requirements import Requirement

SCOPES: Final = ("mapping", "configuration", "refusal")
KVREF: Final = "kvref"


@dataclass(frozen=True, slots=True)
class Feature:
    """One row of `features.toml`.

    Args:
        scope: one of SCOPES.
        name: of the predicate, or the rule of a `RowError`.
        warning: the summary has a warning about it with every profile.
    """

    scope: str
    name: str
    title: str
    requirements: tuple[str, ...]
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Citation:
    """A requirement as it applies to a profile.

    Args:
        defects: kinds of the profile's defects, such as "lost write".
        deviations: what the profile is known to do instead.
    """

    requirement: Requirement
    defects: tuple[str, ...] = ()
    deviations: tuple[str, ...] = ()

    @property
    def crashes_server(self) -> bool:
        """Return whether the C plugin crashes mysqld here."""
        return defects.CRASH in self.defects


@dataclass(frozen=True, slots=True)
class Finding:
    """A feature that a mapping or the configuration has.

    Args:
        where: names of columns, tables, options or rows that have it.
        citations: requirements of the profile.
        instead: requirements that only profile `kvref` has; empty if that is the profile.
    """

    feature: Feature
    where: tuple[str, ...]
    citations: tuple[Citation, ...]
    instead: tuple[Citation, ...]


@cache
def load() -> Mapping[tuple[str, str], Feature]:
    """Return `features.toml` by scope and name. Raises ConfigError for the first fault."""
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


def found(scope: str, where_of: Callable[[str], Iterable[str]], profile: str) -> tuple[Finding, ...]:
    """Return the features of a scope for which a profile has requirements, in the order of `features.toml`.

    Args:
        where_of: returns the names that have a feature, by the feature's name; empty if it is missing.
    """
    features = {feature: tuple(where_of(name)) for (of, name), feature in load().items() if of == scope}
    findings = (finding(feature, where, profile) for feature, where in features.items() if where)
    return tuple(each for each in findings if each.citations or each.instead)


def refusal(rule: str, profile: str) -> tuple[Finding, ...]:
    feature = load().get(("refusal", rule))
    return () if feature is None else (finding(feature, (), profile),)


def finding(feature: Feature, where: tuple[str, ...], profile: str) -> Finding:
    """Return a feature with those of its requirements that apply to a profile."""
    rows = [requirements.load()[identifier] for identifier in feature.requirements]
    kvref_only = [row for row in rows if row.applies_to(KVREF) and not row.applies_to(profile)]
    kinds = _kinds(profile)
    citations = [
        Citation(row, kinds.get(row.id, ()), _deviations(row.id, profile)) for row in rows if row.applies_to(profile)
    ]
    return Finding(feature, where, tuple(citations), tuple(map(Citation, kvref_only)))


@cache
def _deviations(requirement: str, profile: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.reason for row in deviations.of_requirement(requirement, profile)))


@cache
def _kinds(profile: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for defect in defects.of(profile):
        found[defect.requirement] = (*found.get(defect.requirement, ()), defect.kind)
    return found
