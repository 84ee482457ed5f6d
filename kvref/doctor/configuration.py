"""What the configuration as a whole depends on: its options, its policies, and how the default mapping is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref.doctor import features
from kvref.engine.cache.policies import Policies, Policy
from kvref.engine.mapping import MAX_OPTION
from kvref.errors import ConfigError
from kvref.storage.config.cache_policies import KINDS
from kvref.storage.config.catalog import BUILT_IN

if TYPE_CHECKING:
    from kvref.doctor.features import Finding
    from kvref.storage.config.containers import Catalog

SEPARATOR: Final = "separator"
DELIMITER: Final = "table_map_delimiter"


@dataclass(frozen=True, slots=True)
class Options:
    """The configuration outside the rows of `containers`.

    Args:
        rows: of `config_options`; None where the table is missing.
        policies: in force by the first row of `cache_policies`; None where it has none.
        candidates: names of containers in the order in which they may be the default mapping.
        chosen: the default mapping's, None where no row is usable or that is not known.
        certain: every row that counts for this could be looked at.
    """

    rows: dict[str, bytes | None] | None
    policies: Policies | None
    candidates: tuple[str, ...]
    chosen: str | None
    certain: bool

    def value(self, name: str) -> bytes:
        """Return what counts of an option."""
        return ((self.rows or {}).get(name) or BUILT_IN[name])[:MAX_OPTION]

    @property
    def delimiter(self) -> bytes:
        """Return the delimiter between mapping and key."""
        return self.value(DELIMITER)

    @property
    def separator(self) -> bytes:
        """Return the separator between two value columns."""
        return self.value(SEPARATOR)


def read(catalog: Catalog, policies: Policies, candidates: list[str], chosen: str | None, *, certain: bool) -> Options:
    """Read the options as they stand there.

    Args:
        catalog: the tables.
        policies: as the profile reads them.
        candidates: see `Options`.
        chosen: see `Options`.
        certain: see `Options`.
    """
    try:
        rows: dict[str, bytes | None] | None = catalog.options()
    except ConfigError:  # a missing table is a finding here; `read_options` says so in words
        rows = None
    there = policies if catalog.policies() is not None else None
    return Options(rows, there, tuple(candidates), chosen, certain)


def findings(options: Options, profile: str) -> tuple[Finding, ...]:
    """Return the features of the configuration, in the order of `features.toml`."""
    found = []
    for (scope, name), feature in features.load().items():
        if scope == "configuration" and (where := PREDICATES[name](options)):
            found.append(features.finding(feature, tuple(where), profile))
    return tuple(each for each in found if each.citations or each.instead)


def _option(name: str, test: Callable[[bytes | None], object]) -> Callable[[Options], list[str]]:
    return lambda o: [name] if o.rows and name in o.rows and test(o.rows[name]) else []


def _missing(name: str) -> Callable[[Options], list[str]]:
    return lambda o: [name] if o.rows and name not in o.rows else []


def _capitals(name: str) -> Callable[[Options], list[str]]:
    return lambda o: [each for each in o.rows or {} if each != name and each.lower() == name]


def _unknown(options: Options) -> dict[str, bytes | None]:
    return {name: value for name, value in (options.rows or {}).items() if name.lower() not in BUILT_IN}


def _policy(policy: Policy) -> Callable[[Options], list[str]]:
    return lambda o: [f"{kind}_policy" for kind in KINDS if o.policies and getattr(o.policies, kind) is policy]


def _of_several_bytes(value: bytes | None) -> bool:
    return value is not None and len(value) > 1


def _too_long(value: bytes | None) -> bool:
    return value is not None and len(value) > MAX_OPTION


def _passed_over(options: Options) -> list[str]:
    if options.chosen is None or not options.certain:
        return []
    return list(options.candidates[: options.candidates.index(options.chosen)])


PREDICATES: Final[dict[str, Callable[[Options], list[str]]]] = {
    "options-missing": lambda o: ["config_options"] if o.rows is None else [],
    "options-empty": lambda o: ["config_options"] if o.rows is not None and not o.rows else [],
    "policies-empty": lambda o: ["cache_policies"] if o.policies is None else [],
    "policies-cache-only": _policy(Policy.CACHE),
    "policies-caching": _policy(Policy.BOTH),
    "policies-disabled": _policy(Policy.OFF),
    "separator-of-several-bytes": _option(SEPARATOR, _of_several_bytes),
    "separator-too-long": _option(SEPARATOR, _too_long),
    "separator-empty": _option(SEPARATOR, lambda value: value == b""),
    "separator-null": _option(SEPARATOR, lambda value: value is None),
    "separator-missing": _missing(SEPARATOR),
    "separator-in-capitals": _capitals(SEPARATOR),
    "delimiter-of-several-bytes": _option(DELIMITER, _of_several_bytes),
    "delimiter-too-long": _option(DELIMITER, _too_long),
    "delimiter-empty": _option(DELIMITER, lambda value: value == b""),
    "delimiter-null": _option(DELIMITER, lambda value: value is None),
    "delimiter-missing": _missing(DELIMITER),
    "delimiter-in-capitals": _capitals(DELIMITER),
    "unknown-option": lambda o: list(_unknown(o)),
    "unknown-option-null": lambda o: [name for name, value in _unknown(o).items() if value is None],
    "default-by-name": lambda o: ["default"] if o.chosen == "default" else [],
    "default-by-order": lambda o: [o.chosen] if o.chosen not in (None, "default") and o.certain else [],
    "rows-passed-over": _passed_over,
    "default-passed-over": lambda o: [name for name in _passed_over(o) if name == "default"],
    "default-in-other-case": lambda o: [
        name for name in o.candidates if name != "default" and name.lower() == "default"
    ],
    "no-usable-row": lambda o: ["containers"] if o.chosen is None and o.certain else [],
}
