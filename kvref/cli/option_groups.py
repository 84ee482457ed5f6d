"""A command whose options are listed in groups and can be set by environment variables."""

from __future__ import annotations

from typing import Any

import click

OTHER = "Other options"


class GroupedCommand(click.Command):
    """A command that lists its options in groups; each option has an environment variable.

    Args:
        groups: titles, each with the names of its parameters; options of no group are in the last one.
        prefix: of the names of the environment variables: `--tls-cert` is PREFIX_TLS_CERT.
    """

    def __init__(self, *args: Any, groups: dict[str, tuple[str, ...]], prefix: str, **options: Any) -> None:
        super().__init__(*args, **options)
        for parameter in self.params:
            if isinstance(parameter, click.Option):
                parameter.envvar = f"{prefix}_{parameter.opts[0].strip('-').replace('-', '_').upper()}"
                parameter.show_envvar = True
        self._group_of = {name: title for title, names in groups.items() for name in names}
        self._titles = [*groups, OTHER]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each group below its title."""
        records: dict[str, list[tuple[str, str]]] = {title: [] for title in self._titles}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                records[self._group_of.get(parameter.name or "", OTHER)].append(record)
        for title, rows in records.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
