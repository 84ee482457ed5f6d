"""`kvref interop`: run every client library against kvref, the plugin and memcached, and compare with the record.

The work is done in `kvref_conformance.interop`; this module boots the endpoints, installs what the scripts need and
shows what came out. Exit code 0 all as recorded, 1 some cell is otherwise, 2 nothing could be tried.
"""

from __future__ import annotations

import datetime
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kvref.errors import KvrefError, SuiteError, choices
from kvref_conformance import sql
from kvref_conformance.errors import CannotJudge
from kvref_conformance.interop import kits, matrix, world
from kvref_conformance.interop.matrix import ENDPOINTS, Matrix
from kvref_conformance.interop.play import NOT_RUN, WRONG, Played, not_run, play
from kvref_conformance.interop.rows import Client, clients, features
from kvref_conformance_cli.options import json_option, write_option
from kvref_testbed import targets
from kvref_testbed.targets.folders import build_once, cache_root
from kvref_testbed.targets.memcached import Running, Twemproxy, twemproxy_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvref_testbed.targets.progress import Progress

# Scripts wait more than they work.
AT_ONCE: Final = 6
LAZY: Final = ("--innodb_flush_log_at_trx_commit=0",)


@click.command("interop")
@click.option("--client", "globs", multiple=True, metavar="GLOB", help="Only clients whose ID matches. Repeatable.")
@click.option(
    "--target", "names", multiple=True, type=click.Choice(list(ENDPOINTS)), help="Only this target. Repeatable."
)
@json_option
@write_option
@click.pass_context
def command(
    context: click.Context, /, globs: tuple[str, ...], names: tuple[str, ...], file: Path | None, page: Path | None
) -> None:
    """Run client libraries of many languages against kvref, the plugin and memcached.

    Exit code: 0 all cells match the record, 1 some differ, 2 none could be run.
    """
    chosen = matching(clients(), globs)
    if page is not None and (globs or names):
        raise KvrefError("--write requires a full run: remove --client and --target")
    with targets.Terminal() as progress:
        wanted = [name for name in ENDPOINTS if not names or name in names]
        result = _run(chosen, wanted, progress)
    if file is not None:
        file.write_text(result.as_json(), encoding="utf-8")
    try:
        different = _write(page, result) if page is not None else matrix.differences(result, matrix.recorded())
    except SuiteError as error:
        raise KvrefError(str(error)) from error
    for line in different:
        click.echo(line)
    cells = [cell for row in result.played.values() for played in row.values() for cell in played.cells.values()]
    wrong = sum(cell.outcome == WRONG for cell in cells)
    click.echo(f"{len(cells)} cells of {len(chosen)} clients, {wrong} wrong; {len(different)} differ from the record")
    context.exit(1 if different else 0)


def matching(rows: Mapping[str, Client], globs: Sequence[str]) -> list[Client]:
    """Return the clients whose ID matches a glob; all without globs.

    Raises:
        KvrefError: there are none.
    """
    found = [each for each in rows.values() if not globs or any(fnmatchcase(each.id, glob) for glob in globs)]
    if not found:
        raise KvrefError(f"no client matches {' or '.join(globs)}{choices(globs[0], rows)}")
    return found


def _write(page: Path, result: Matrix) -> list[str]:
    missing = sorted(
        {
            f"{client}: not run: {cell.why}"
            for client, row in result.played.items()
            for played in row.values()
            for cell in played.cells.values()
            if cell.outcome == NOT_RUN
        }
    )
    if not missing:
        known = matrix.notes()
        page.write_text(matrix.filled(page.read_text(encoding="utf-8"), result, known), encoding="utf-8")
        matrix.PATH.write_text(result.as_json(), encoding="utf-8")
        return matrix.unexplained(result, known)
    return missing


def _run(chosen: Sequence[Client], names: Sequence[str], progress: Progress) -> Matrix:
    """Run the clients at the endpoints; what is unlike the record is run once more, alone, and that counts."""
    runs = _Runs(chosen, progress)
    with ExitStack() as stack:
        booted = {name: _boot(name, stack, progress) for name in names}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            futures = {
                (client.id, name): pool.submit(runs.run, client, booted[name]) for client in chosen for name in names
            }
            played = {client.id: {name: futures[client.id, name].result() for name in names} for client in chosen}
        _again(runs, booted, played, progress)
    versions = {name: target.version for name, target in booted.items()}
    machine = {"twemproxy": twemproxy_version()} if not runs.lacks["twemproxy"] else {}
    return Matrix(datetime.datetime.now(datetime.UTC).date().isoformat(), versions, played, machine)


def _again(
    runs: _Runs,
    booted: dict[str, targets.Target],
    played: dict[str, dict[str, Played]],
    progress: Progress,
) -> None:
    record = matrix.recorded()
    for client, by_endpoint in played.items():
        for name in by_endpoint:
            once = matrix.unlike(client, name, by_endpoint[name], record)
            if once:
                progress.step("\n".join(["unlike the record, so run again:", *once]))
                by_endpoint[name] = runs.run(clients()[client], booted[name], "again-")


def _boot(name: str, stack: ExitStack, progress: Progress) -> targets.Target:
    instance = stack.enter_context(targets.private(name, LAZY if name == "mysql-8.0-plugin" else (), progress))
    dsn = instance.target.sql or instance.target.store
    if dsn is not None:
        try:
            database = sql.connect(dsn, "8.0.33")
        except CannotJudge as error:
            raise KvrefError(str(error)) from error
        world.create(database)
        database.close()
        instance.restart({})
    return instance.target


def install(kit: kits.Kit, progress: Progress) -> tuple[Path | None, str]:
    """Install what the scripts of a language need into the cache.

    Returns:
        The folder, None if it cannot be installed; and what is missing, empty if nothing is.
    """
    folder = cache_root() / "interop" / kit.key
    try:
        if not folder.is_dir():
            progress.step(f"installing what the scripts of {kit.name} need")
        return build_once(folder, kit.build, progress), kit.missing()
    except kits.KitError as error:
        return None, str(error)


class _Runs:
    """Runs scripts, each kit installed once.

    chosen: the clients whose kits are required.
    """

    def __init__(self, chosen: Sequence[Client], progress: Progress) -> None:
        self._kits, self._features = kits.load(), tuple(features().values())
        self._progress = progress
        self._folders: dict[str, Path] = {}
        self.lacks = {name: self._install(name) for name in self._kits if name in {each.kit for each in chosen}}
        self.lacks["twemproxy"] = self._kits["twemproxy"].missing()

    def _install(self, name: str) -> str:
        folder, lack = install(self._kits[name], self._progress)
        if folder is not None:
            self._folders[name] = folder
        return lack

    def run(self, client: Client, target: targets.Target, prefix: str = "") -> Played:
        """Run a client's script against a target, through the client's proxy; its keys begin with the prefix."""
        lack = self.lacks[client.kit] or (client.through and self.lacks[client.through])
        if lack:
            return not_run(self._features, lack)
        words, environment = self._kits[client.kit].command(self._folders[client.kit], client.path)
        with ExitStack() as stack:
            address = target.memcached()
            if client.through:
                # One for each script: a mapping bound through it affects no other script.
                recipe = Twemproxy(client.through, "in front of a target", Running(address), "memcached")
                try:
                    address = stack.enter_context(targets.booted(recipe)).target.memcached()
                except KvrefError as error:
                    return not_run(self._features, str(error))
            host, port = address.rsplit(":", 1)
            played = play(words, environment, [host, port, client.protocol, f"{prefix}{client.id}"], self._features)
        wrong = [feature for feature, cell in played.cells.items() if cell.outcome in {WRONG, NOT_RUN}]
        self._progress.step(f"{client.id} at {target.name}: {' '.join(wrong) or 'nothing'} wrong")
        return played
