"""The configuration schema: from its tables to the mappings in force; the cache table of `kvref init --cache`.

`containers.py` checks one row; this module reads the rows, the default mapping, the options and the cache policies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cmp_to_key
from importlib.resources import files
from typing import Final, Protocol

from kvref import collations
from kvref.collations.charsets import OTHER_CHARSETS, UTF8MB4
from kvref.engine.cache.memory import Policies, Policy
from kvref.engine.mapping import (
    DEFAULT_DELIMITER,
    DEFAULT_SEPARATOR,
    Column,
    Directory,
    Mapping,
    Naming,
    default_name,
    option,
)
from kvref.errors import ConfigError
from kvref.profiles import Profile
from kvref.protocol.command_table import PolicyKind
from kvref.storage.config.containers import CONTAINER_COLUMNS, Catalog, check, check_again

DEFAULT_NAME: Final = "cache"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")


def cache_script(package: str, name: str) -> str:
    """Return the SQL that makes a cache table and its row of `containers`: the file `cache.sql` of a store's package.

    The index on the expiry column contains the rows to remove first. Raises ConfigError: a mapping cannot be called so.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(f"cache name {name!r}: write a letter and up to 39 letters, digits or underscores")
    return files(package).joinpath("cache.sql").read_text(encoding="utf-8").replace("{name}", name)


# The columns by which a configuration table is known as the plugin's.
CONFIG_COLUMNS: Final = {
    "containers": CONTAINER_COLUMNS,
    "config_options": ("name", "value"),
    "cache_policies": ("policy_name", "get_policy", "set_policy", "delete_policy", "flush_policy"),
}


def naming_of(column: Column | None, collation: str) -> Naming:
    """Return how names of containers are read and compared, by the column `name` and its collation."""
    charset, width = (UTF8MB4, None) if column is None else (column.charset, column.width)
    if charset.name in OTHER_CHARSETS:
        charset = UTF8MB4
    known = collations.known(collation.lower())
    if known is None:
        return Naming(charset, width)
    order = collations.order(known)
    return Naming(charset, width, order.folded, cmp_to_key(order.compare))


def foreign(table: str, columns: Iterable[str], wanted: Iterable[str]) -> str:
    """Return what a table with the name of one of the plugin's or kvref's lacks of its columns, empty if nothing."""
    there = {each.lower() for each in columns}
    lacks = [each for each in wanted if each not in there]
    whose = "the plugin's" if wanted in CONFIG_COLUMNS.values() else "kvref's"
    return f"the table {table} is not {whose}, it lacks {', '.join(lacks)}" if lacks else ""


class SharedMappings(Protocol):
    """Mappings that several processes of a server read once: the first reading counts for all of them."""

    def find(self, name: str) -> Mapping | None:
        """Return the mapping that is kept under a name, as it was read; of its columns only names are known."""

    def add(self, name: str, mapping: Mapping) -> Mapping | None:
        """Keep a mapping; returns the one, as `find` does, that is kept already, where there is one."""


# The option of kvref's own: how rows are cached, for all mappings or, as `row_cache.NAME`, for one.
ROW_CACHE: Final = "row_cache"
BUILT_IN: Final = {"table_map_delimiter": DEFAULT_DELIMITER, "separator": DEFAULT_SEPARATOR}


def read_directory(catalog: Catalog, profile: Profile) -> tuple[Directory, list[str]]:
    """Read the configuration, choose the default mapping, and return a sentence for each row that cannot be used.

    Raises ConfigError: no usable row, or options that the profile does not do without.
    """
    delimiter, separator, problems = read_options(catalog, profile)
    policies, passed_over = read_policies(catalog, profile)
    problems += passed_over
    rows = {row.name: row for row in catalog.containers()}
    mappings: list[Mapping] = []
    naming = catalog.naming()
    for name in default_name(list(rows), naming.order):
        try:
            mappings.append(check(rows[name], catalog, profile))
        except ConfigError as error:
            problems.append(str(error))
    if not mappings:
        causes = "".join(f"\n  {problem}" for problem in problems) or " it is empty"
        raise ConfigError(f"no usable row in containers:{causes}")
    by_exact_name = profile["containers.kept"] == "by-spelling"
    directory = Directory(mappings[0], naming, delimiter, separator, by_exact_name=by_exact_name, policies=policies)
    directory.usable = tuple(mappings)
    if not by_exact_name:
        directory.remember(mappings[0])
    return directory, problems


def read_options(catalog: Catalog, profile: Profile) -> tuple[bytes, bytes, list[str]]:
    """Return delimiter and separator of the options, and one sentence for each that is missing.

    Raises ConfigError: the profile does not do without what is missing.
    """
    problems: list[str] = []
    try:
        rows = catalog.options()
    except ConfigError as error:
        rows = {}
        problems.append(str(error))
    nulls = [name for name in BUILT_IN if rows.get(name, b"") is None]
    if profile["config.missing_row"] == "refused" and (not rows or nulls):
        raise ConfigError(
            "config_options is missing, empty or holds a NULL: the plugin opens no port with it either: give it the"
            " rows 'separator' and 'table_map_delimiter', each with a value"
        )
    problems += [f"config_options row {name!r} is NULL: taken as missing" for name in nulls]
    for name, builtin in BUILT_IN.items():
        if name not in rows:
            problems.append(f"config_options has no row {name!r}: {builtin.decode()!r} is used")
    return (
        option(rows.get("table_map_delimiter"), DEFAULT_DELIMITER),
        option(rows.get("separator"), DEFAULT_SEPARATOR),
        problems,
    )


POLICY_KINDS: Final = tuple(kind.value for kind in PolicyKind)
_POLICY_ROW: Final = "('cache_policy', 'innodb_only', 'innodb_only', 'innodb_only', 'innodb_only')"


def read_policies(catalog: Catalog, profile: Profile) -> tuple[Policies, list[str]]:
    """Return the policies in force, and one sentence for each that is passed over.

    The plugin reads the second to the fifth column, and those of an ENUM only, by the member's number
    (innodb_read_cache_policy; more:policy-141, more:policy-151 to more:policy-157). Raises ConfigError: there is none,
    and the profile does not do without.
    """
    cells = catalog.policies()
    if cells is None:
        if profile["config.missing_row"] == "refused":
            raise ConfigError(
                "cache_policies is missing or empty: the plugin opens no port with it either: give it the row "
                + _POLICY_ROW
            )
        return Policies(), [f"cache_policies is missing or empty: innodb_only is used: give it the row {_POLICY_ROW}"]
    by_name = {cell.column.lower(): cell for cell in cells}
    words = ", ".join(policy.value for policy in Policy)
    chosen: list[Policy] = []
    problems: list[str] = []
    for position, kind in enumerate(POLICY_KINDS, 1):
        if profile["cache.policy_words"] == "enum":
            cell = cells[position] if position < len(cells) else None
            policy = None if cell is None else dict(enumerate(Policy, 1)).get(cell.member or 0)
        else:
            cell = by_name.get(f"{kind}_policy")
            policy = next((each for each in Policy if cell is not None and each.value == cell.word), None)
        if policy is None:
            what = f"has no column for {kind}" if cell is None else f"{cell.column} is {cell.word!r}"
            problems.append(f"cache_policies: {what}: innodb_only is used: write one of {words} into an ENUM of them")
        chosen.append(policy or Policy.TABLE)
    return Policies(*chosen), problems


def find(
    catalog: Catalog, profile: Profile, naming: Naming, name: str, shared: SharedMappings | None = None
) -> tuple[Mapping | None, str]:
    """Return one container, by the name that a client sent, as a mapping, or None and the reason why there is none.

    `shared`: mappings that other processes of the server have read; None for a single process.
    """
    fold = naming.fold
    fold_key = str if profile["containers.kept"] == "by-spelling" else fold
    first = shared.find(fold_key(name)) if shared is not None else None
    if first is not None:
        check_again(first, catalog, profile)
        return first, ""
    try:
        row = next((row for row in catalog.containers() if fold(row.name) == fold(name)), None)
        if row is None:
            return None, f"no container {name!r}"
        mapping = check(row, catalog, profile)
    except ConfigError as error:
        return None, str(error)
    first = shared.add(fold_key(row.name), mapping) if shared is not None else None
    if first is not None and fold_key(name) == fold_key(row.name):
        check_again(first, catalog, profile)
        return first, ""
    return mapping, ""
