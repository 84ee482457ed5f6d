"""`kvref doctor`: what is wrong with a configuration, and what its mappings depend on."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click

from kvref import profiles
from kvref.cli import completion, output
from kvref.doctor.examine import examine
from kvref.doctor.report import as_record, report_view
from kvref.doctor.source import open_source
from kvref.errors import KvrefError, SuiteError, choices

WIDTH: Final = 120  # columns, where the output is not a terminal


@click.command("doctor")
@click.argument("dump", metavar="[FILE.sql]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--store", "dsn", metavar="DSN", help="Database to check, opened read-only: sqlite:///PATH or mysql://USER@HOST/."
)
@click.option(
    "--profile",
    shell_complete=completion.profile,
    default="kvref",
    show_default=True,
    metavar="NAME",
    help="Profile whose startup checks to apply: mysql-8.0 or mysql-5.6 for what the plugin does.",
)
@click.option(
    "--json",
    "record",
    metavar="FILE",
    help="Also write the report as JSON. `-` writes only the JSON, to standard output.",
)
@click.option("--verbose", is_flag=True, help="Also show the requirements and quirks that each mapping depends on.")
@click.pass_context
def command(
    context: click.Context, dump: Path | None, dsn: str | None, profile: str, record: str | None, *, verbose: bool
) -> None:
    """Check every row of containers as the server does at startup.

    Shows errors (rows that are not usable, and how to fix them), warnings (what crashes mysqld, loses data or makes
    writes fail), notices, and what changes for these tables between the plugin and kvref. Reads a database, or a dump
    of the schema innodb_memcache and the mapped tables, also compressed (gzip, xz, bzip2, zstd), or from standard
    input (`-`):

    \b
      mysqldump --databases innodb_memcache test > FILE.sql

    Exit codes: 0 all rows are usable, 1 at least one is not, 2 the database or the dump could not be read, or the dump
    has a statement that is not understood and may concern a mapped table.
    """
    if (dump is None) == (dsn is None):
        raise click.UsageError("name a database with --store DSN, or a dump file")
    able = profiles.with_mappings()
    if profile not in able:
        raise KvrefError(f"no profile {profile!r} with mappings{choices(profile, able)}")
    try:
        with ExitStack() as stack:
            if dump is None:
                source = stack.enter_context(open_source(dsn or ""))
            else:
                from kvref.doctor.dump.source import open_dump  # noqa: PLC0415 - needs the extra

                source = stack.enter_context(open_dump(dump))
            report = examine(source, profiles.load(profile))
    except SuiteError as error:
        raise KvrefError(str(error)) from error
    if record != "-":
        output.print_results(*report_view(report, verbose=verbose), width=WIDTH)
    if record is not None:
        output.write(record, json.dumps(as_record(report), indent=2) + "\n")
    context.exit(report.exit_code)
