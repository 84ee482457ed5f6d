"""The command line: one module for each command, loaded when it is called.

A command translates options into calls of the rooms below and errors into exit codes; it holds no rule of its own.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem

import kvref
from kvref.errors import KvrefError, choices, install, printable


class Entry(NamedTuple):
    """A command, described without loading its module, which may need packages that another does not.

    Args:
        module: defines a click command named `command`.
        summary: the first paragraph of its help.
        extra: of the package, with what the command needs.
        optional: what the command needs the extra for; empty: it does not run without.
    """

    module: str
    summary: str
    extra: str = ""
    optional: str = ""


# Requests for help or completion load no module: the modules of some commands take a second.
COMMANDS = {
    "serve": Entry(
        "kvref.cli.serve", "Serve mapped tables over the memcached protocols, text and binary.", "mysql, metrics",
        "mysql:// stores and --metrics",
    ),
    "init": Entry(
        "kvref.cli.init", "Create containers, config_options and cache_policies, and tables to serve.", "mysql",
        "mysql:// stores",
    ),
    "config": Entry("kvref.cli.config", "Show or check the configuration of `kvref serve`."),
    "settings": Entry(
        "kvref.cli.settings", "List the settings for `kvref serve --set` and the table [settings] of its file."
    ),
    "conform": Entry(
        "kvref_conformance_cli.conform",
        "Judge the endpoint HOST:PORT or unix:PATH. Without an address, judge the embedded server over SQLite.",
        "conformance",
    ),
    "conform-client": Entry(
        "kvref_conformance_cli.conform_client",
        "Judge memcached clients: a scripted server sends them split, late, wrong and missing replies.", "conformance",
    ),
    "probe": Entry("kvref.cli.probe", "Send lines to an endpoint and show the exact bytes of its replies."),
    "doctor": Entry(
        "kvref.cli.doctor", "Check every row of containers as the server does at startup.", "doctor",
        "mysql:// stores and dumps",
    ),
    "spec": Entry(
        "kvref.cli.spec",
        "Show requirements, by ID or by filter. Without arguments, list the chapters.", "doctor",
        "--html and --markdown",
    ),
    "implement": Entry("kvref.cli.implement", "Write a starter kit for a server of your own."),
    "target": Entry(
        "kvref_conformance_cli.target",
        "Start and stop real endpoints: the MySQL plugin, memcached, kvref, and SQL servers without the plugin.",
        "conformance",
    ),
    "record": Entry(
        "kvref_conformance_cli.record",
        "Run the conversations of SCRIPTS.jsonl twice on each target and record the replies. Or record real traffic.",
        "conformance",
    ),
    "replay": Entry(
        "kvref_conformance_cli.replay",
        "Replay recorded conversations and compare every reply. Default: all of them, on kvref over SQLite.",
        "conformance",
    ),
    "duel": Entry(
        "kvref_conformance_cli.duel",
        "Run generated conversations on the targets A and B in parallel and compare every reply and every row.",
        "conformance",
    ),
    "interop": Entry(
        "kvref_conformance_cli.interop",
        "Run client libraries of many languages against kvref, the plugin and memcached.", "conformance",
    ),
    "matrix": Entry(
        "kvref_conformance_cli.matrix", "Compare reports side by side: requirements by endpoint.", "conformance"
    ),
    "bench": Entry(
        "kvref_bench.cli",
        "Measure endpoints over memcached and SQL with the experiments of published articles.", "bench",
    ),
}  # fmt: skip
INTERRUPTED = 130  # exit code after Ctrl-C, as a shell has it
# Groups of commands in `kvref --help`.
GROUPS = {
    "Operate": ("serve", "init", "config", "settings", "probe", "doctor"),
    "Judge": ("conform", "conform-client", "spec", "matrix", "implement"),
    "Measure": ("bench",),
    "Maintain": ("target", "record", "replay", "duel", "interop"),
}
# The extra that an error names where a package is missing.
EXTRAS = {"bench": "bench", "doctor": "doctor", "spec": "doctor"}


class _CouldNotError(click.ClickException):
    """What could not be tried at all: bad usage, unreachable endpoint, missing tool; click exits so for usage."""

    exit_code = 2


def _fix(name: str, package: str) -> str:
    return f"needs the package {package!r}: {install(EXTRAS.get(name, 'conformance'))}"


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
            module = importlib.import_module(COMMANDS[cmd_name].module)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("kvref"):
                raise
            return _without_package(cmd_name, error.name)
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """Write each command in its group, with its whole summary and the extra that it needs."""
        width = max(map(len, COMMANDS))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{name:{width}}", f"{COMMANDS[name].summary}{_needed(COMMANDS[name])}") for name in names]
                )
        with formatter.section("Extras"):
            formatter.write_text("Install an extra with pip install 'kvref[NAME]'.")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"no command {name!r}{choices(name, COMMANDS)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that begin so, without loading the commands."""
        found = [
            CompletionItem(name, help=entry.summary) for name, entry in COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            # What a command has started has ended by now.
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except KvrefError as error:
            raise _CouldNotError(printable(str(error), keep="\n")) from error
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("kvref") or ctx.invoked_subcommand is None:
                raise
            # A part of a command needs it: a dump, a page.
            fix = _fix(ctx.invoked_subcommand, error.name)
            raise _CouldNotError(f"`kvref {ctx.invoked_subcommand}` {fix}") from error


def _needed(entry: Entry) -> str:
    if not entry.extra:
        return ""
    return f"  [extra: {entry.extra}{f', for {entry.optional}' if entry.optional else ''}]"


def _is_compiled() -> bool:
    """Return whether modules of the hot path are extension modules, from the same sources (`.ci/build-compiled`)."""
    spec = find_spec("kvref.protocol.text")
    return spec is not None and spec.origin is not None and not spec.origin.endswith(".py")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(kvref.__version__ + (", compiled" if _is_compiled() else ""), prog_name="kvref")
def main() -> None:
    """Server, specification and conformance suite for memcached over SQL tables (MySQL's daemon_memcached)."""
