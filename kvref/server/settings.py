"""Settings under the plugin's own names, with its defaults and limits: `--set NAME=VALUE`, or a TOML file."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from kvref import documents
from kvref.documents import DocumentError
from kvref.engine.session import MAX_REPLY, MIN_REPLY
from kvref.errors import ConfigError, Part, cause_of, choices, suggestion
from kvref.profiles import Profile
from kvref.protocol.rules import MAX_KEY, MAX_LINE
from kvref.storage.several import Placement, placement

_log = logging.getLogger("kvref.server")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Args:
        name: as the plugin or memcached spells it.
        default: its value when not set, in the profile `kvref`.
        low: smallest value taken.
        high: largest value taken.
        unit: what the number counts.
        help: what it does, for `--help`.
        dynamic: a reload changes it while the server runs.
        fact: of the profile, which has the default; "": it is the same in all profiles.
    """

    name: str
    default: int
    low: int
    high: int
    unit: str
    help: str
    dynamic: bool = False
    fact: str = ""

    def default_in(self, profile: Profile) -> int:
        """Return its value when not set, in a profile."""
        return profile.number(self.fact) if self.fact else self.default


MAX_TIMEOUT: Final = 1 << 30
SETTINGS: Final = {
    setting.name: setting
    for setting in (
        Setting("daemon_memcached_r_batch_size", 1, 1, 1 << 30, "reads", "reads per transaction"),
        Setting("daemon_memcached_w_batch_size", 1, 1, 1 << 20, "writes", "writes per transaction"),
        Setting(
            "innodb_api_bk_commit_interval", 5, 1, MAX_TIMEOUT, "s", "idle time after which a batch is committed",
            dynamic=True,
        ),
        Setting(
            "innodb_api_trx_level", 1, 0, 3, "level",
            "isolation level: 0 read uncommitted, 1 read committed, 2 repeatable read, 3 serializable; the default in"
            " the profiles mysql-* is 0", dynamic=True, fact="isolation.default_level",
        ),
        Setting(
            "innodb_api_disable_rowlock", 0, 0, 1, "switch",
            "1: writes do not wait for batches that have written the row; no effect with mysql://, where writes"
            " always wait",
        ),
        Setting(
            "innodb_api_enable_mdl", 0, 0, 1, "switch",
            "accepted for compatibility; only an open batch blocks DDL on a table",
        ),
        Setting(
            "innodb_api_enable_binlog", 0, 0, 1, "switch",
            "accepted for compatibility; a mysql:// server with a binary log logs each batch as one transaction,"
            " also at 0",
        ),
        Setting("innodb_lock_wait_timeout", 50, 1, MAX_TIMEOUT, "s", "maximum time a write waits for a row lock"),
        Setting("item_size_max", 1 << 20, 1 << 10, 1 << 30, "bytes", "maximum value size of a storage command"),
        Setting(
            "oversized_set_removes", 1, 0, 1, "switch",
            "1: a set whose value is rejected (too large, or invalid for its column) deletes the old item; 0:"
            " keeps it", dynamic=True,
        ),
        Setting(
            "sticky_mapping", 1, 0, 1, "switch",
            "1: after a command with @@MAPPING.KEY, the connection's commands use that mapping; 0: the mapping applies"
            " to that command only; @@MAPPING without a key and bind select a mapping in both cases", dynamic=True,
        ),
        Setting(
            "maxconns", 10_000, 1, 1 << 20, "connections",
            "maximum number of clients; excess clients receive an error and are disconnected; see also ulimit -n",
            dynamic=True,
        ),
        Setting(
            "idle_timeout", 0, 0, MAX_TIMEOUT, "s", "time after which an idle connection is closed; 0 disables",
            dynamic=True,
        ),
        Setting(
            "command_timeout", 300, 0, MAX_TIMEOUT, "s",
            "maximum time from the first to the last byte of a command, data block included; 0 disables",
            dynamic=True,
        ),
        Setting(
            "send_timeout", 300, 0, MAX_TIMEOUT, "s",
            "maximum time a reply may stay unread before the client is disconnected; 0 disables", dynamic=True,
        ),
        Setting("key_size_max", MAX_KEY, 1, MAX_KEY, "bytes", "maximum key length, for new connections", dynamic=True),
        Setting(
            "line_size_max", MAX_LINE, 2 << 10, 1 << 30, "bytes",
            "maximum length of a get command line, for new connections", dynamic=True,
        ),
        Setting(
            "pipelined_size_max", 256 << 10, 4 << 10, 1 << 30, "bytes",
            "maximum size of pipelined commands that wait for a lock or a commit before the server stops reading from"
            " the connection; at most 16384 while they wait for the connection's turn", dynamic=True,
        ),
        Setting(
            "reply_size_max", MAX_REPLY, MIN_REPLY, 1 << 30, "bytes",
            "maximum total size of the values in the reply to one get", dynamic=True,
        ),
        Setting(
            "row_cache_bytes", 64 << 20, 0, 1 << 40, "bytes",
            "size of the row cache over SQLite and of that of row_cache_binlog=1; 0 disables", dynamic=True,
        ),
        Setting(
            "row_cache_binlog", 0, 0, 1, "switch",
            "1: cache rows of a mysql:// store and follow its binary log as a replica; at innodb_api_trx_level 0 and 3"
            " none is cached",
        ),
        Setting(
            "row_cache_staleness", 0, 0, 60_000, "ms",
            "time by which a row cached with row_cache_binlog=1 may be out of date; 0: no get misses a commit that was"
            " answered before it",
        ),
        Setting(
            "expired_rows_purge_interval", 0, 0, MAX_TIMEOUT, "s",
            "time between two removals of expired rows, from tables with an index on the expiry column; 0 disables",
            dynamic=True,
        ),
        Setting(
            "uncommitted_size_max", 1 << 28, 1 << 16, 1 << 40, "bytes",
            "maximum size of one batch's pending writes over SQLite, including 640 bytes of overhead per write",
        ),
    )
}  # fmt: skip


def parse(pairs: list[str], file: Path | None, profile: Profile) -> dict[str, int]:
    """Return all settings: the profile's defaults, the values of the file, and then NAME=VALUE of the command line.

    Raises:
        ConfigError: unknown name, no number, true or false for a number, or out of range.
    """
    values = of_file(read_file(file).settings, file, profile)
    for name, text in _split(pairs).items():
        values[name] = _number(_setting(name), text, str(profile["settings.out_of_range"]))
    return values


def of_file(given: dict[str, int], file: Path | None, profile: Profile, part: Part = nullcontext) -> dict[str, int]:
    """Return all settings, with the values of the table `settings` of a file; raises as `parse`."""
    values = {setting.name: setting.default_in(profile) for setting in SETTINGS.values()}
    for name, value in given.items():
        with part():
            setting = _setting(name)
            if isinstance(value, bool) and setting.unit != "switch":
                raise ConfigError(
                    f"configuration file {file}: setting {name} is a number of {setting.unit}, not true or false"
                )
            values[name] = _number(setting, str(int(value)), str(profile["settings.out_of_range"]))
    return values


def changed(current: dict[str, int], wanted: dict[str, int]) -> dict[str, int]:
    """Return settings after a reload: those that wait for the next start stay."""
    return current | {name: value for name, value in wanted.items() if SETTINGS[name].dynamic}


def warn_of_restart(current: dict[str, int], wanted: dict[str, int]) -> None:
    """Log what of a reload waits for the next start."""
    for name, value in wanted.items():
        if not SETTINGS[name].dynamic and value != current[name]:
            _log.warning("setting %s stays %d until the server restarts", name, current[name])


def _setting(name: str) -> Setting:
    setting = SETTINGS.get(name)
    if setting is None:
        raise ConfigError(f"unknown setting {name!r}{choices(name, SETTINGS)}")
    return setting


def _split(pairs: list[str]) -> dict[str, str]:
    named = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ConfigError(f"setting {pair!r}: write NAME=VALUE")
        named[name] = text
    return named


def _number(setting: Setting, text: str, out_of_range: str) -> int:
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) < 20:
        number = int(text)
        if setting.low <= number <= setting.high:
            return number
        if out_of_range == "wraps" and number < 0 and setting.unit in {"reads", "writes"}:
            return setting.high  # tx:wbatch-094
        if out_of_range != "error":
            return min(max(number, setting.low), setting.high)
    raise ConfigError(
        f"setting {setting.name}={text}: write a number from {setting.low} to {setting.high} ({setting.help})"
    )


# Keys of a configuration file before its tables, each with the parameter of `kvref serve` that it is the value of.
_STORE: Final = "store"  # a DSN, or the tables of several stores
SERVER_KEYS: Final = {
    _STORE: "dsn",
    "profile": "profile",
    "workers": "workers",
    "metrics": "metrics",
    "metrics_hosts": "metrics_hosts",
    "log_format": "log_format",
    "log_level": "log_level",
}


def server_parameters(file: Path, part: Part = nullcontext) -> dict[str, Any]:
    """Return what a configuration file gives for parameters of `kvref serve`, by their names.

    Raises:
        ConfigError: it cannot be read, is not TOML, or a value has the wrong type.
    """
    found = _read_toml(file)
    if found.get(_STORE) and _are_tables(found[_STORE]):
        del found[_STORE]  # the tables of `placement`
    fitting = {}
    for key, parameter in SERVER_KEYS.items():
        if key not in found:
            continue
        value = found[key]
        strings = isinstance(value, list) and all(isinstance(each, str) for each in value)
        wanted = {"workers": "an integer", "metrics_hosts": "a list of strings"}.get(key, "a string")
        fits = strings if key == "metrics_hosts" else isinstance(value, int if key == "workers" else str)
        with part():
            if not fits or isinstance(value, bool):
                raise ConfigError(f"configuration file {file}: {key} = {value!r}: write {wanted}")
            fitting[parameter] = value
    return fitting


def origins(pairs: list[str], file: Path | None) -> dict[str, str]:
    """Return the origin of each setting, option, file or default; arguments and errors as of `parse`."""
    found = dict.fromkeys(SETTINGS, "default")
    found |= dict.fromkeys(read_file(file).settings, "file")
    return found | dict.fromkeys(_split(pairs), "option")


def _read_toml(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        return documents.read_toml(file)
    except (OSError, DocumentError) as error:
        raise ConfigError(f"configuration file {file}: {cause_of(error)}") from error


Tables = list[dict[str, Any]]


class ConfigFile(NamedTuple):
    """The tables of a configuration file: settings by name, and each `[[listener]]`, `[[store]]` and `[[mapping]]`."""

    settings: dict[str, int]
    listeners: Tables
    stores: Tables
    mappings: Tables


def placement_of(file: Path | None) -> Placement | None:
    """Return the stores that a configuration file names, and the store of each mapping; None if it names no store.

    Raises:
        ConfigError: as `read_file`, or a table `[[store]]` or `[[mapping]]` is invalid.
    """
    found = read_file(file)
    try:
        return placement(found.stores, found.mappings)
    except ConfigError as error:
        raise ConfigError(f"configuration file {file}: {error}") from error


def _are_tables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def read_file(file: Path | None, part: Part = nullcontext) -> ConfigFile:
    """Read a configuration file, if there is one; `part` is a context of the check of each key and setting.

    Raises:
        ConfigError: it cannot be read, is not TOML, has an unknown key, or a setting is not an integer or a boolean.
    """
    found = _read_toml(file)
    stores = found[_STORE] if _are_tables(found.get(_STORE)) else []
    for name in SERVER_KEYS:
        found.pop(name, None)
    settings, listeners, mappings = found.pop("settings", {}), found.pop("listener", []), found.pop("mapping", [])
    form = "write a table [settings] with NAME = VALUE, and a table [[listener]] for each listener"
    known = (*SERVER_KEYS, "settings", "listener", "mapping")
    for name in found:
        with part():
            unknown = f"unknown key {name!r}{suggestion(name, known)}"
            more = f"keys in front of them are {', '.join(SERVER_KEYS)}"
            raise ConfigError(f"configuration file {file}: {unknown}: {form}; {more}")
    if not (isinstance(settings, dict) and _are_tables(listeners) and _are_tables(mappings)):
        raise ConfigError(f"configuration file {file}: {form}")
    integers = {}
    for name, value in settings.items():
        with part():
            if not isinstance(value, int):
                raise ConfigError(
                    f"configuration file {file}: setting {name} = {value!r}: write an integer, true or false"
                )
            integers[name] = value
    return ConfigFile(integers, listeners, stores, mappings)
