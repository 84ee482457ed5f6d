"""Settings under the plugin's own names, with its defaults and limits; the command line's `--set NAME=VALUE`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvref.errors import ConfigError


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
    """

    name: str
    default: int
    low: int
    high: int
    unit: str
    help: str


SETTINGS: Final = {
    setting.name: setting
    for setting in (
        Setting("daemon_memcached_r_batch_size", 1, 1, 1, "reads", "reads for each transaction; only 1 is implemented"),
        Setting(
            "daemon_memcached_w_batch_size", 1, 1, 1, "writes", "writes for each transaction; only 1 is implemented"
        ),
        Setting("innodb_lock_wait_timeout", 50, 1, 1073741824, "s", "how long a write waits for another writer"),
        Setting("item_size_max", 1 << 20, 1 << 10, 1 << 30, "bytes", "largest value a storage verb takes"),
    )
}


def parse(pairs: list[str]) -> dict[str, int]:
    """Return all settings with those of the command line applied.

    Args:
        pairs: texts of the form NAME=VALUE.

    Raises:
        ConfigError: unknown name, no number, or out of range; the text names the value and what is taken.
    """
    values = {setting.name: setting.default for setting in SETTINGS.values()}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ConfigError(f"setting {pair!r}: write NAME=VALUE")
        setting = SETTINGS.get(name)
        if setting is None:
            raise ConfigError(f"no setting {name!r}: choose one of {', '.join(SETTINGS)}")
        values[name] = _number(setting, text)
    return values


def _number(setting: Setting, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and setting.low <= int(text) <= setting.high):
        raise ConfigError(
            f"setting {setting.name}={text}: write a number from {setting.low} to {setting.high} ({setting.help})"
        )
    return int(text)
