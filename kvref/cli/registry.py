"""The commands of `kvref`: its own, and those of other installed distributions, found by entry points.

The suite and the benchmark are distributions that depend on this one, and nothing here imports them. A distribution
adds commands with an entry point of the group `kvref.commands`: a mapping of names to `Entry`, in a module that imports
little, since `kvref --help` loads it.
"""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kvref.errors import KvrefError, install

if TYPE_CHECKING:
    from collections.abc import Mapping

    import click

COMMANDS: Final = "kvref.commands"
# Groups of commands in `kvref --help`, in their order.
OPERATE, JUDGE, MEASURE, MAINTAIN = GROUPS = ("Operate", "Judge", "Measure", "Maintain")


class Entry(NamedTuple):
    """A command, described without loading its module, which may need packages that another does not.

    Args:
        module: defines a click command named `command`.
        group: one of GROUPS.
        summary: the first paragraph of its help.
        extra: of the package, with what the command needs.
        optional: what the command needs the extra for; empty: it does not run without.
    """

    module: str
    group: str
    summary: str
    extra: str = ""
    optional: str = ""

    def load(self) -> click.Command:
        """Return the command; raises ModuleNotFoundError if a package that it needs is missing."""
        command: click.Command = importlib.import_module(self.module).command
        return command


OWN: Final[dict[str, Entry]] = {
    "serve": Entry(
        "kvref.cli.serve", OPERATE, "Serve mapped tables over the memcached protocols, text and binary.",
        "mysql, metrics", "mysql:// stores and --metrics",
    ),
    "init": Entry(
        "kvref.cli.init", OPERATE, "Create containers, config_options and cache_policies, and tables to serve.",
        "mysql", "mysql:// stores",
    ),
    "config": Entry("kvref.cli.config", OPERATE, "Show or check the configuration of `kvref serve`."),
    "settings": Entry(
        "kvref.cli.settings", OPERATE, "List the settings for `kvref serve --set` and the table [settings] of its file."
    ),
    "probe": Entry("kvref.cli.probe", OPERATE, "Send lines to an endpoint and show the exact bytes of its replies."),
    "doctor": Entry(
        "kvref.cli.doctor", OPERATE, "Check every row of containers as the server does at startup.", "doctor",
        "mysql:// stores and dumps",
    ),
    "spec": Entry(
        "kvref.cli.spec", JUDGE, "Show requirements, by ID or by filter. Without arguments, list the chapters.",
        "conformance", "cases, recordings and files",
    ),
    "implement": Entry("kvref.cli.implement", JUDGE, "Write a starter kit for a server of your own."),
}  # fmt: skip
# Commands of the project's other distributions by the extra that installs them, for the error if one is not installed.
ELSEWHERE: Final[Mapping[str, tuple[str, ...]]] = {
    "conformance": ("conform", "conform-client", "matrix", "target", "record", "replay", "duel", "interop"),
    "bench": ("bench",),
}


@cache
def commands() -> Mapping[str, Entry]:
    """Return the installed commands by name; those of OWN have priority. Raises KvrefError for a broken entry point."""
    points = sorted(entry_points(group=COMMANDS), key=lambda point: point.name)
    found = {name: entry for point in points for name, entry in _loaded(point).items()}
    return OWN | found | OWN


def missing() -> Mapping[str, tuple[str, ...]]:
    """Return the commands of ELSEWHERE that are not installed, by extra."""
    absent = {extra: tuple(name for name in names if name not in commands()) for extra, names in ELSEWHERE.items()}
    return {extra: names for extra, names in absent.items() if names}


def provided(group: str) -> Any:
    """Return what another distribution provides for a group of entry points, None if none is installed."""
    return next((_loaded(point) for point in entry_points(group=group)), None)


def not_installed(extra: str) -> str:
    """Return the end of an error about a distribution that is not installed, with the command that installs it."""
    return f"needs the package 'kvref-{extra}': {install(extra)}"


def _loaded(point: Any) -> Any:
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        package = f"the package {point.dist.name!r}" if point.dist else "a package"
        raise KvrefError(f"cannot load {point.value} of {package}: {error}: reinstall it") from error
