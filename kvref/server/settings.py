"""Settings under the plugin's own names, with its defaults and limits: `--set NAME=VALUE`, or a TOML file."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvref.engine.session import MAX_REPLY
from kvref.errors import ConfigError
from kvref.profiles import Profile
from kvref.protocol.rules import MAX_KEY, MAX_LINE
from kvref.server.config_file import read_file

_log = logging.getLogger("kvref.server")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Args:
        name: as the plugin or memcached spells it.
        default: its value when not set.
        low: smallest value taken.
        high: largest value taken.
        unit: what the number counts.
        help: what it does, for `--help`.
        dynamic: a reload changes it while the server runs.
    """

    name: str
    default: int
    low: int
    high: int
    unit: str
    help: str
    dynamic: bool = False


MOST_SECONDS: Final = 1 << 30
SETTINGS: Final = {
    setting.name: setting
    for setting in (
        Setting("daemon_memcached_r_batch_size", 1, 1, 1 << 30, "reads", "reads for each transaction"),
        Setting("daemon_memcached_w_batch_size", 1, 1, 1 << 20, "writes", "writes for each transaction"),
        Setting(
            "innodb_api_bk_commit_interval", 5, 1, MOST_SECONDS, "s", "how long a batch is idle until it is committed",
            dynamic=True,
        ),
        Setting(
            "innodb_api_trx_level", 0, 0, 3, "level",
            "isolation: 0 read uncommitted, 1 read committed, 2 repeatable read, 3 serializable", dynamic=True,
        ),
        Setting(
            "innodb_api_disable_rowlock", 0, 0, 1, "switch",
            "writes wait for no batch that has written the row; no effect behind mysql://, where each write waits",
        ),
        Setting(
            "innodb_api_enable_mdl", 0, 0, 1, "switch", "accepted: only an open batch ever keeps DDL from a table"
        ),
        Setting(
            "innodb_api_enable_binlog", 0, 0, 1, "switch",
            "accepted: a server behind mysql:// that has a binary log takes each batch as one transaction, also at 0",
        ),
        Setting("innodb_lock_wait_timeout", 50, 1, MOST_SECONDS, "s", "how long a write waits for another writer"),
        Setting("item_size_max", 1 << 20, 1 << 10, 1 << 30, "bytes", "largest value a storage verb takes"),
        Setting(
            "oversized_set_removes", 1, 0, 1, "switch",
            "a set whose value is refused (too large, or not fit for its column) removes the old item; 0 keeps it",
            dynamic=True,
        ),
        Setting(
            "maxconns", 10_000, 1, 1 << 20, "connections", "further ones are told so and closed; see also ulimit -n",
            dynamic=True,
        ),
        Setting(
            "idle_timeout", 0, 0, MOST_SECONDS, "s", "how long a connection may say nothing; 0 for ever", dynamic=True
        ),
        Setting(
            "command_timeout", 300, 0, MOST_SECONDS, "s",
            "how long the rest of a command may take, its data included; 0 for ever", dynamic=True,
        ),
        Setting(
            "send_timeout", 300, 0, MOST_SECONDS, "s",
            "how long a client may take nothing of what it asked for; 0 for ever", dynamic=True,
        ),
        Setting("key_size_max", MAX_KEY, 1, MAX_KEY, "bytes", "longest key, for new connections", dynamic=True),
        Setting(
            "line_size_max", MAX_LINE, 2 << 10, 1 << 30, "bytes", "longest line of a get, for new connections",
            dynamic=True,
        ),
        Setting(
            "pipelined_size_max", 256 << 10, 4 << 10, 1 << 30, "bytes",
            "commands of a connection that wait for their turn; then nothing more is read", dynamic=True,
        ),
        Setting("reply_size_max", MAX_REPLY, 1 << 20, 1 << 30, "bytes", "values that one get answers", dynamic=True),
        Setting(
            "row_cache_bytes", 64 << 20, 0, 1 << 40, "bytes",
            "rows of a SQLite file kept for gets, where no batches are in force; 0 keeps none", dynamic=True,
        ),
        Setting(
            "uncommitted_size_max", 1 << 28, 1 << 16, 1 << 40, "bytes",
            "what the pending writes of one batch may hold over SQLite, each counted with 640 bytes more",
        ),
    )
}  # fmt: skip


def parse(pairs: list[str], file: Path | None, profile: Profile) -> dict[str, int]:
    """Return all settings, those of the file and then those of the command line applied.

    Args:
        pairs: texts of the form NAME=VALUE.
        file: TOML with a table `settings`; None for none.
        profile: decides what becomes of a value out of range.

    Raises:
        ConfigError: unknown name, no number, true or false for a number, or out of range; the text names the value and
            what is taken.
    """
    values = {setting.name: setting.default for setting in SETTINGS.values()}
    for name, typed in read_file(file)[0].items():
        setting = _setting(name)
        if typed.switch and setting.unit != "switch":
            raise ConfigError(
                f"configuration file {file}: setting {name} is a number of {setting.unit}, not true or false"
            )
        values[name] = _number(setting, typed.text, str(profile["settings.out_of_range"]))
    for name, text in _split(pairs).items():
        values[name] = _number(_setting(name), text, str(profile["settings.out_of_range"]))
    return values


def changed(current: dict[str, int], wanted: dict[str, int]) -> dict[str, int]:
    """Return settings after a reload: those that wait for the next start stay.

    Args:
        current: in force.
        wanted: as they were read again.
    """
    return current | {name: value for name, value in wanted.items() if SETTINGS[name].dynamic}


def warn_of_waiting(current: dict[str, int], wanted: dict[str, int]) -> None:
    """Log what of a reload waits for the next start; arguments as of `changed`."""
    for name, value in wanted.items():
        if not SETTINGS[name].dynamic and value != current[name]:
            _log.warning("setting %s stays %d until the next start", name, current[name])


def _setting(name: str) -> Setting:
    setting = SETTINGS.get(name)
    if setting is None:
        raise ConfigError(f"no setting {name!r}: choose one of {', '.join(SETTINGS)}")
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
            return setting.high  # wbatch-094
        if out_of_range != "error":
            return min(max(number, setting.low), setting.high)
    raise ConfigError(
        f"setting {setting.name}={text}: write a number from {setting.low} to {setting.high} ({setting.help})"
    )
