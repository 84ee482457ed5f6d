"""Help of a command whose options are listed in groups."""

from __future__ import annotations

from typing import Any

import click

OTHER = "Other options"


class GroupedCommand(click.Command):
    """A command that lists its options in groups.

    Args:
        groups: titles, each with the names of its parameters; options of no group are in the last one.
    """

    def __init__(self, *args: Any, groups: dict[str, tuple[str, ...]], **options: Any) -> None:
        super().__init__(*args, **options)
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
