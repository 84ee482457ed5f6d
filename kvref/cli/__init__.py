"""The command line: one module for each command, loaded when it is called.

A command translates options into calls of the packages below and errors into exit codes; it defines no rule. `registry`
has the commands, also those of other distributions.
"""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem

import kvref
from kvref.cli.registry import ELSEWHERE, GROUPS, OWN, Entry, commands, missing, not_installed
from kvref.errors import KvrefError, choices, install, printable

INTERRUPTED = 130  # exit code after Ctrl-C, as a shell has it


class _CommandFailedError(click.ClickException):
    """Bad usage, unreachable endpoint or missing tool; click uses the same exit code for usage."""

    exit_code = 2


def _unavailable(name: str, reason: str) -> click.Command:
    """Return a command that is not installed; with any arguments it fails with the reason."""

    def refuse() -> None:
        raise KvrefError(f"`kvref {name}` {reason}")

    return click.Command(
        name,
        callback=refuse,
        help=f"(not installed) {reason}",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


def _missing_package(error: ModuleNotFoundError, name: str | None) -> str:
    """Return which package a command needs and how to install it; raise the error if that is not known."""
    extra = "" if name is None else commands()[name].extra
    if error.name is None or error.name.startswith("kvref") or not extra or "," in extra:
        raise error
    return f"needs the package {error.name!r}: {install(extra)}"


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        # The commands of this distribution need not look for others.
        entry = OWN.get(cmd_name) or commands().get(cmd_name)
        if entry is None:
            extra = next((extra for extra, names in ELSEWHERE.items() if cmd_name in names), None)
            return None if extra is None else _unavailable(cmd_name, not_installed(extra))
        try:
            return entry.load()
        except ModuleNotFoundError as error:
            return _unavailable(cmd_name, _missing_package(error, cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """Write each command in its group, with its whole summary and the extra that it needs."""
        width = max(map(len, commands()))
        groups: dict[str, list[tuple[str, str]]] = {title: [] for title in GROUPS}
        for name, entry in commands().items():
            groups[entry.group].append((f"{name:{width}}", f"{entry.summary}{_extra_note(entry)}"))
        groups["Not installed"] = [(install(extra), ", ".join(names)) for extra, names in missing().items()]
        for title, rows in groups.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        with formatter.section("Extras"):
            formatter.write_text("Install an extra with pip install 'kvref[NAME]'.")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            known = [*commands(), *(each for names in missing().values() for each in names)]
            ctx.fail(f"no command {name!r}{choices(name, known)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that begin as typed, without loading the commands."""
        names = [name for name in commands() if name.startswith(incomplete)]
        found = [CompletionItem(name, help=commands()[name].summary) for name in names]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        try:
            return super().make_context(*args, **extra)
        except KvrefError as error:  # of an entry point
            raise _CommandFailedError(printable(str(error), keep="\n")) from error

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            # What a command has started has ended by now.
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except KvrefError as error:
            raise _CommandFailedError(printable(str(error), keep="\n")) from error
        except ModuleNotFoundError as error:
            # A part of a command needs it: a dump, a page.
            reason = _missing_package(error, ctx.invoked_subcommand)
            raise _CommandFailedError(f"`kvref {ctx.invoked_subcommand}` {reason}") from error


def _extra_note(entry: Entry) -> str:
    if not entry.extra:
        return ""
    return f"  [extra: {entry.extra}{f', for {entry.optional}' if entry.optional else ''}]"


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(kvref.__version__, prog_name="kvref")
def main() -> None:
    """Server, specification and conformance suite for memcached over SQL tables (MySQL's daemon_memcached)."""
