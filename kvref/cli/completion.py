"""Names that the shell completes: profiles, requirements, chapters and settings, loaded when they are completed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, TypeAlias

import click

Completion: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]


def _beginning_with(module: str, names: Callable[[Any], Iterable[str]]) -> Completion:
    """Return a completion for click: the names of a module that begin as typed, in upper or lower case."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in names(import_module(module)) if name.casefold().startswith(incomplete.casefold())]

    return complete


profile = _beginning_with("kvref.profiles", lambda profiles: profiles.names())
requirement = _beginning_with("kvref.specification.requirements", lambda requirements: requirements.load())
chapter = _beginning_with("kvref.specification.requirements", lambda requirements: requirements.CHAPTERS)
setting = _beginning_with("kvref.server.settings", lambda settings: [f"{name}=" for name in settings.SETTINGS])
