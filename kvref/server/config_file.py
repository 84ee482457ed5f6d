"""The file of `kvref serve --config`: TOML with a table `settings` and tables `listener`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from kvref import documents
from kvref.documents import DocumentError
from kvref.errors import ConfigError


class Typed(NamedTuple):
    """A setting as TOML has it.

    Args:
        text: as `--set` has it.
        switch: it is true or false.
    """

    text: str
    switch: bool


def read_file(file: Path | None) -> tuple[dict[str, Typed], list[dict[str, Any]]]:
    """Read a configuration file.

    Args:
        file: its path; None: there is none.

    Returns:
        Settings by name, and each `[[listener]]`.

    Raises:
        ConfigError: it cannot be read, is no TOML, has something else in it, or a setting is neither an integer nor a
            boolean.
    """
    if file is None:
        return {}, []
    try:
        found = documents.read_toml(file)
    except (OSError, DocumentError) as error:
        raise ConfigError(f"configuration file {file}: {error}") from error
    settings, listeners = found.pop("settings", {}), found.pop("listener", [])
    tables = isinstance(listeners, list) and all(isinstance(each, dict) for each in listeners)
    if found or not isinstance(settings, dict) or not tables:
        form = "write a table [settings] with NAME = VALUE, and a table [[listener]] for each listener"
        raise ConfigError(f"configuration file {file}: {form}")
    for name, value in settings.items():
        if not isinstance(value, int):
            raise ConfigError(f"configuration file {file}: setting {name} = {value!r}: write an integer, true or false")
    typed = {name: Typed(str(int(value)), isinstance(value, bool)) for name, value in settings.items()}
    return typed, listeners
