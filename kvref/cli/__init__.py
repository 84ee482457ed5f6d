"""The command line: one module for each command, loaded when it is called.

A command translates options into calls of the rooms below and errors into exit codes; it holds no rule of its own.
"""

from __future__ import annotations

import importlib

import click

import kvref
from kvref.compiled import is_compiled
from kvref.errors import KvrefError
from kvref.printable import printable

# Command -> module; a module defines a click command named `command` and may need packages that another does not.
COMMANDS = {
    "serve": "kvref.cli.serve",
    "init": "kvref.cli.init",
    "config": "kvref.cli.config",
    "settings": "kvref.cli.settings",
    "conform": "kvref.cli.judge.conform",
    "probe": "kvref.cli.probe",
    "doctor": "kvref.cli.doctor",
    "spec": "kvref.cli.judge.spec",
    "target": "kvref.cli.target",
    "record": "kvref.cli.judge.record",
    "replay": "kvref.cli.judge.replay",
    "duel": "kvref.cli.judge.duel",
    "interop": "kvref.cli.judge.interop",
    "matrix": "kvref.cli.judge.matrix",
    "bench": "kvref.cli.bench",
}
# What has the packages of a command; `serve`, `init` and `probe` need none that the core has not.
EXTRAS = {"bench": "bench", "doctor": "doctor", "spec": "doctor"}


class _CouldNotError(click.ClickException):
    """What could not be tried at all: bad usage, unreachable endpoint, missing tool; click exits so for usage."""

    exit_code = 2


def _fix(name: str, package: str) -> str:
    return f"needs the package {package!r}: pip install 'kvref[{EXTRAS.get(name, 'conformance')}]'"


def _without_package(name: str, package: str) -> click.Command:
    fix = _fix(name, package)

    def refuse() -> None:
        raise KvrefError(f"`kvref {name}` {fix}")

    return click.Command(
        name,
        callback=refuse,
        help=f"(not installed) {fix}",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        try:
            module = importlib.import_module(COMMANDS[cmd_name])
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("kvref"):
                raise
            return _without_package(cmd_name, error.name)
        command: click.Command = module.command
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KvrefError as error:
            raise _CouldNotError(printable(str(error), keep="\n")) from error
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("kvref") or ctx.invoked_subcommand is None:
                raise
            # A part of a command needs it: a dump, a page.
            fix = _fix(ctx.invoked_subcommand, error.name)
            raise _CouldNotError(f"`kvref {ctx.invoked_subcommand}` {fix}") from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(kvref.__version__ + (", compiled" if is_compiled() else ""), prog_name="kvref")
def main() -> None:
    """Server, specification and conformance suite for memcached over SQL tables (MySQL's daemon_memcached)."""
