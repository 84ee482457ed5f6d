"""The file of `kvref serve --config`: TOML with a table `settings` and tables `listener`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from kvref.errors import ConfigError


def read_file(file: Path | None) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Read a configuration file.

    Args:
        file: its path; None: there is none.

    Returns:
        Settings by name, as `--set` has them, and each `[[listener]]`.

    Raises:
        ConfigError: it cannot be read, is no TOML, or has something else in it.
    """
    if file is None:
        return {}, []
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"configuration file {file}: {error}") from error
    settings, listeners = found.pop("settings", {}), found.pop("listener", [])
    tables = isinstance(listeners, list) and all(isinstance(each, dict) for each in listeners)
    if found or not isinstance(settings, dict) or not tables:
        form = "write a table [settings] with NAME = VALUE, and a table [[listener]] for each listener"
        raise ConfigError(f"configuration file {file}: {form}")
    # true and false are how TOML writes the switches.
    return {name: str(int(value) if isinstance(value, bool) else value) for name, value in settings.items()}, listeners
