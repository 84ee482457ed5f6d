"""The configuration a case runs under, as one level of each parameter; what cannot be combined, and why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kvref_conformance.case import Setup
from kvref_conformance.sql.settings import INTERVAL, NEVER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref.profiles import Profile
    from kvref_conformance.case import Shape

# A parameter and one of its levels.
Level = tuple[str, str]

DELIMITER: Final = "delimiter"
SEPARATOR: Final = "separator"
VALUES: Final = "value columns"
POLICIES: Final = "cache policies"
WRITES: Final = "write batch"
READS: Final = "read batch"
ISOLATION: Final = "level"
IDLE: Final = "idle commit"
OPTIONAL: Final = ("flags", "cas", "expiry")
SIZES: Final = ("1", "small", "large")
MIXED: Final = "mixed"
NO_ROW: Final = "none"
PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    DELIMITER: (".", "other byte", "several bytes", NO_ROW),
    SEPARATOR: ("|", "other byte", "several bytes", NO_ROW),
    VALUES: ("1", "2", "3", "4 or more"),
    **dict.fromkeys(OPTIONAL, ("mapped", "not mapped")),
    POLICIES: ("innodb_only", "cache_only", "caching", "disabled", MIXED),
    WRITES: SIZES,
    READS: SIZES,
    ISOLATION: ("0", "1", "2", "3"),
    IDLE: ("on", "off"),
}
# From here on a batch is large.
LARGE: Final = 100
# The table of a case that brings none of its own: one value column, and all that is optional.
_USUAL_TABLE: Final = ("1", *["mapped"] * 3)
_BETWEEN: Final = re.compile(r"[ ,;|]+")


def row(
    setup: Setup | None, shape: Shape | None, settings: Mapping[str, int] | None, profile: Profile
) -> tuple[Level, ...] | None:
    """Return the levels in force, in the order of PARAMETERS; None where the table cannot be mapped as it is written.

    Args:
        setup: of the case; None for the usual one.
        shape: of the case; None where the usual tables serve it.
        settings: of the case; None, taken for the defaults: those that the endpoint had before the run.
        profile: has defaults of settings.
    """
    options = setup or Setup()
    table = _USUAL_TABLE if shape is None else _table(shape)
    if table is None:
        return None
    given = {} if settings is None else {INTERVAL: NEVER, **settings}
    sizes = (_size(given.get(f"daemon_memcached_{word}_batch_size", 1)) for word in "wr")
    level = str(min(3, max(0, given.get("innodb_api_trx_level", profile.number("isolation.default_level")))))
    idle = "off" if given.get(INTERVAL, 0) >= NEVER else "on"
    option = (_option(options.delimiter, "."), _option(options.separator, "|"))
    levels = (*option, *table, _policies(options), *sizes, level, idle)
    return tuple(zip(PARAMETERS, levels, strict=True))


def _option(value: str | None, usual: str) -> str:
    if not value:
        return NO_ROW
    return usual if value == usual else "other byte" if len(value) == 1 else "several bytes"


def _table(shape: Shape) -> tuple[str, ...] | None:
    values = [name for name in _BETWEEN.split(shape.values or "") if name]
    if not values or not all(_is_column(name, shape) for name in values):
        return None
    optional = (shape.flags, shape.cas, shape.expiry)
    mapped = ("mapped" if name and _is_column(name, shape) else "not mapped" for name in optional)
    return (PARAMETERS[VALUES][min(len(values), 4) - 1], *mapped)


def _is_column(name: str, shape: Shape) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", shape.columns, re.IGNORECASE) is not None


def _policies(options: Setup) -> str:
    # Of several rows the first by name counts.
    kinds = set(min(options.policies)[1:])
    return kinds.pop() if len(kinds) == 1 else MIXED


def _size(number: int) -> str:
    return "1" if number <= 1 else "small" if number < LARGE else "large"


def exclusions(profile: Profile) -> dict[frozenset[Level], str]:
    """Return what cannot occur, or has no effect, with the reason: a level, or a pair of levels."""
    found: dict[frozenset[Level], str] = {}
    if profile["config.missing_row"] == "refused":
        why = "the endpoint does not start without the row"
        found |= {frozenset({(option, NO_ROW)}): why for option in (DELIMITER, SEPARATOR)}
    without_table = [(POLICIES, kind) for kind in ("cache_only", "disabled")]
    for parameters, why in (
        ((WRITES, READS, ISOLATION, IDLE), "nothing reaches a table: no transaction, no batch"),
        ((SEPARATOR, VALUES, *OPTIONAL), "nothing reaches a table: no columns"),
    ):
        others = [(name, level) for name in parameters for level in PARAMETERS[name][1:]]
        found |= {frozenset({policy, other}): why for policy in without_table for other in others}
    return found
