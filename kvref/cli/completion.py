"""Names that the shell completes: profiles, requirements, chapters and settings.

A function loads the module with the names only when the shell completes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import click


def profile(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's
    """Return the profiles that begin so."""
    from kvref import profiles  # noqa: PLC0415

    return beginning_with(profiles.names(), incomplete)


def requirement(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's
    """Return the IDs of requirements that begin so."""
    from kvref.specification import requirements  # noqa: PLC0415

    return beginning_with(requirements.load(), incomplete.upper())


def chapter(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's
    """Return the chapters that begin so."""
    from kvref.specification import requirements  # noqa: PLC0415

    return beginning_with(requirements.CHAPTERS, incomplete)


def setting(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's
    """Return the settings that begin so, each with the sign in front of its value."""
    from kvref.server.settings import SETTINGS  # noqa: PLC0415

    return beginning_with([f"{name}=" for name in SETTINGS], incomplete)


def beginning_with(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names that begin so."""
    return [name for name in names if name.startswith(incomplete)]
