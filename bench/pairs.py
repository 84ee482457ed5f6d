# /// script
# requires-python = ">=3.11"
# dependencies = ["kvref[bench]"]
# ///
"""kvref against its peers in interleaved pairs: the plugin, native memcached, plain SQL, each on the same processor.

    python bench/pairs.py                                              # all rows
    python bench/pairs.py --rows get-64,set-16 --pairs 5 --seconds 10 --json pairs.json
    python bench/pairs.py --compiled build/compiled --rows compiled-get-64,compiled-set-16     # see .ci/build venv
    python bench/pairs.py show pairs.json                              # the table again
    python bench/pairs.py show pairs.json --into docs/explanation/speed.md   # between its two markers

Servers have one processor, the generator another. What each row compares: `kvref_bench/pairs/rows.py`.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any

import click

from kvref.errors import KvrefError
from kvref_bench.errors import BenchError
from kvref_bench.pairs import cpus, document
from kvref_bench.pairs.measure import Settings, measure
from kvref_bench.pairs.rows import COUNT, Row, rows
from kvref_testbed.targets import Terminal

PATH = click.Path(dir_okay=False, path_type=Path)
DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group(invoke_without_command=True)
@click.option("--rows", "names", help="NAME[,NAME…]. [default: all]")
@click.option("--pairs", default=5, show_default=True, type=click.IntRange(1), help="Of each row.")
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(0.5), help="Of each measurement.")
@click.option("--warmup", default=1.0, show_default=True, type=click.FloatRange(0), help="Seconds before each.")
@click.option("--keys", default=COUNT, show_default=True, type=click.IntRange(128), help="In the table.")
@click.option("--server-cpus", default="0", show_default=True, help="Processors of the servers: 0 or 0,2-3.")
@click.option("--client-cpus", default="1", show_default=True, help="Processors of the generator.")
@click.option("--kvref-option", "options", multiple=True, help="Further one of `kvref serve`; may be repeated.")
@click.option("--compiled", "venv", type=DIRECTORY, help="That `.ci/build venv` has made, for the rows compiled-*.")
@click.option("--json", "file", type=PATH, help="Write all figures there, after each row.")
@click.option("--markdown", type=PATH, help="Write the table there; to the screen it goes either way.")
@click.pass_context
def main(
    context: click.Context,
    names: str | None,
    file: Path | None,
    markdown: Path | None,
    server_cpus: str,
    client_cpus: str,
    **given: Any,
) -> None:
    """Measure rows."""
    if context.invoked_subcommand is not None:
        return
    chosen = _chosen(names)
    where = cpus.split(server_cpus, client_cpus)
    numbers = [given[name] for name in ("pairs", "seconds", "warmup", "keys")]
    compiled = given["venv"] and given["venv"].absolute() / "bin" / "python"
    settings = Settings(where, *numbers, given["options"], compiled)
    _allow_many_connections()
    made = document.begin(settings, sys.argv)
    with Terminal() as progress:
        for measured in measure(chosen, settings, lambda text: click.echo(text, err=True), progress):
            document.add(made, measured)
            if file is not None:
                document.write(made, file)
    told = document.table(made)
    if markdown is not None:
        markdown.write_text(told, encoding="utf-8")
    click.echo(told, nl=False)


@main.command()
@click.argument("file", type=PATH)
@click.option("--into", type=PATH, help="Put the table between the markers of its name in this file.")
def show(file: Path, into: Path | None) -> None:
    """Print the table of a file again."""
    made = document.read(file)
    if into is None:
        click.echo(document.table(made), nl=False)
        return
    into.write_text(document.insert(into.read_text(encoding="utf-8"), made, file.stem), encoding="utf-8")


def _chosen(names: str | None) -> list[Row]:
    known = {row.name: row for row in rows()}
    if names is None:
        return list(known.values())
    unknown = [name for name in names.split(",") if name not in known]
    if unknown:
        raise BenchError(f"no rows {', '.join(unknown)}: choose among {', '.join(known)}")
    return [known[name] for name in names.split(",")]


def _allow_many_connections() -> None:
    # 2,000 connections are as many descriptors in the generator and in the server; both inherit the limit.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    try:
        main()
    except KvrefError as error:
        sys.exit(f"pairs: {error}")
