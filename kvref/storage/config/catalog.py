"""The configuration schema: from its tables to the mappings in force; the cache table of `kvref init --cache`.

`containers.py` checks one row; this module reads the rows, the default mapping, the options and the cache policies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Final, Protocol

from kvref.engine.cache.memory import Policies, Policy
from kvref.engine.mapping import DEFAULT_DELIMITER, DEFAULT_SEPARATOR, Directory, Mapping, Naming, default_name, option
from kvref.errors import ConfigError
from kvref.profiles import Profile
from kvref.protocol.command_table import PolicyKind
from kvref.storage.config.containers import CONTAINER_COLUMNS, Catalog, PolicyCell, check, check_again

DEFAULT_NAME: Final = "cache"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")


def cache_script(package: str, name: str) -> str:
    """Return the SQL that makes a cache table and its row of `containers`.

    Each store has the statements in its file `cache.sql`. The index on the expiry column contains the rows to remove
    first.

    Args:
        package: of the store; it contains `cache.sql`.
        name: of the mapping and of the table.

    Raises:
        ConfigError: a mapping cannot be called so.
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


def foreign(table: str, columns: Iterable[str], wanted: Iterable[str]) -> str:
    """Return what a table with the name of one of the plugin's or kvref's lacks, empty if it is that table.

    Args:
        table: its name.
        columns: its columns.
        wanted: columns that the plugin's or kvref's table has.
    """
    there = {each.lower() for each in columns}
    lacks = [each for each in wanted if each not in there]
    whose = "the plugin's" if wanted in CONFIG_COLUMNS.values() else "kvref's"
    return f"the table {table} is not {whose}, it lacks {', '.join(lacks)}" if lacks else ""


class Kept(Protocol):
    """Mappings that several processes of a server read once: the first reading counts for all of them."""

    def find(self, name: str) -> Mapping | None:
        """Return the mapping that is kept under a name, as it was read; of its columns only names are known."""

    def keep(self, name: str, mapping: Mapping) -> Mapping | None:
        """Keep a mapping; returns the one, as `find` does, that is kept already, where there is one."""


# The option of kvref's own: how rows are cached, for all mappings or, as `row_cache.NAME`, for one.
ROW_CACHE: Final = "row_cache"
BUILT_IN: Final = {"table_map_delimiter": DEFAULT_DELIMITER, "separator": DEFAULT_SEPARATOR}


def read_directory(catalog: Catalog, profile: Profile) -> tuple[Directory, list[str]]:
    """Read the configuration and choose the default mapping.

    Returns:
        The directory, and one sentence for each row that cannot be used.

    Raises:
        ConfigError: no usable row, or options that the profile does not do without.
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
    """Read the options.

    Returns:
        Delimiter, separator, and one sentence for each that is missing.

    Raises:
        ConfigError: the profile does not do without what is missing.
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
    """Read the policies in force.

    The plugin reads the second to the fifth column, and those of an ENUM only, by the member's number
    (innodb_read_cache_policy; more:policy-141, more:policy-151 to more:policy-157).

    Args:
        catalog: the store.
        profile: decides what a missing row means and which cells count.

    Returns:
        The policies, and one sentence for each that is passed over.

    Raises:
        ConfigError: there is none and the profile does not do without.
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
    chosen: list[Policy] = []
    problems: list[str] = []
    for place, kind in enumerate(POLICY_KINDS, 1):
        if profile["cache.policy_words"] == "enum":
            cell = cells[place] if place < len(cells) else None
            policy = None if cell is None else _of_member(cell)
        else:
            cell = by_name.get(f"{kind}_policy")
            policy = None if cell is None else _of_word(cell)
        if policy is None:
            what = f"has no column for {kind}" if cell is None else f"{cell.column} is {cell.word!r}"
            problems.append(
                f"cache_policies: {what}: innodb_only is used: write one of {_words()} into an ENUM of them"
            )
        chosen.append(policy or Policy.TABLE)
    return Policies(*chosen), problems


def _of_member(cell: PolicyCell) -> Policy | None:
    policies = list(Policy)
    return policies[cell.member - 1] if cell.member is not None and 1 <= cell.member <= len(policies) else None


def _of_word(cell: PolicyCell) -> Policy | None:
    return next((policy for policy in Policy if policy.value == cell.word), None)


def _words() -> str:
    return ", ".join(policy.value for policy in Policy)


def find(
    catalog: Catalog, profile: Profile, naming: Naming, name: str, kept: Kept | None = None
) -> tuple[Mapping | None, str]:
    """Read one container by name, for a command that switches or binds a mapping.

    Args:
        catalog: the store.
        profile: decides how a row is checked and under which spelling it is kept.
        naming: how names compare.
        name: the name that the client sent.
        kept: mappings that other processes of the server have read; None for a single process.

    Returns:
        The mapping and an empty text, or None and the reason why there is no mapping.
    """
    fold = naming.fold
    place = str if profile["containers.kept"] == "by-spelling" else fold
    first = kept.find(place(name)) if kept is not None else None
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
    first = kept.keep(place(row.name), mapping) if kept is not None else None
    if first is not None and place(name) == place(row.name):
        check_again(first, catalog, profile)
        return first, ""
    return mapping, ""
