"""`kvref conform`: judge an endpoint, by default the embedded server over SQLite.

Fills in what it knows of the endpoint, then runs the suite with pytest in this process; the suite is
`kvref_conformance`. Exit code 0 conforms, 1 deviates, 2 could not judge, 130 interrupted.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import pytest

from kvref import profiles
from kvref.cli import completion
from kvref.errors import KvrefError, choices
from kvref.specification import requirements
from kvref_conformance_cli.options import is_address, suite_options
from kvref_testbed import targets
from kvref_testbed.targets import catalogue
from kvref_testbed.targets.kvref_server import reload_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kvref_conformance.running.parallel import Instance

Option = str | int | bool | tuple[str, ...] | None
Options = dict[str, Option]
SUITE: Final = "kvref_conformance"
EMBEDDED: Final = "kvref-sqlite"
# Instances of the embedded server: most of a run is waiting, which overlaps.
JOBS: Final = 4
INTERRUPTED: Final = 130
# Settings of the user's own pytest, which must not reach the suite.
FOREIGN: Final = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")


@click.command("conform")
@click.argument("names", metavar="[HOST:PORT|unix:PATH] [CHAPTER]...", nargs=-1, shell_complete=completion.chapter)
@suite_options
@click.option(
    "--target",
    metavar="NAME",
    shell_complete=catalogue.complete,
    help="Start a private instance of this target and judge it; see `kvref target list`.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help=f"Number of instances of the target to start; cases run on them in parallel.  [default: {JOBS} for"
    " the embedded server, 1 for --target]",
)
@click.option(
    "--self-test",
    is_flag=True,
    help="Judge deliberately broken servers (mutants) and check that the right requirement fails for each; with"
    " --target, over the database of that target.",
)
@click.pass_context
def command(
    context: click.Context, /, names: tuple[str, ...], target: str | None, self_test: bool, **options: Option
) -> None:
    """Judge the endpoint HOST:PORT or unix:PATH. Without an address, judge the embedded server over SQLite.

    Further arguments are chapters of the suite to run, for example `kvref conform bind`. Without any, all are run.

    Exit code: 0 the endpoint conforms (documented deviations are listed), 1 it does not, 2 it could not be judged, 130
    it was interrupted by Ctrl-C; the report then has the cases that were judged until then.
    """
    if self_test:
        # It loads the server, of which a run of the suite in this process knows nothing.
        from kvref_conformance_cli.self_test import run_self_test  # noqa: PLC0415

        context.exit(run_self_test(context))
    address = names[0] if names and is_address(names[0]) else None
    options["chapter"] = (*context.params["chapter"], *names[0 if address is None else 1 :])
    context.exit(judge(address, target, options))


def judge(address: str | None, target: str | None, options: Options) -> int:
    """Run the suite against an endpoint, a private instance of a target, or the embedded server.

    Args:
        address: HOST:PORT or unix:PATH; None for a target.
        target: name of one, which is booted; None for the embedded server.
        options: see `run_suite`.

    Returns:
        the exit code.

    Raises:
        KvrefError: options that do not go together, or a target that cannot be booted.
    """
    if address is not None and target is not None:
        raise KvrefError("an address and --target exclude each other: remove one")
    jobs = options.pop("jobs", None)
    if address is not None:
        if jobs is not None:
            raise KvrefError("--jobs applies only to targets, of which it starts several: remove it")
        return run_suite(address, _with_what_is_known(address, options))
    if any(options[name] is not None for name in ("sql", "reload", "restart")):
        raise KvrefError("--sql, --reload and --restart apply only to an endpoint: add its HOST:PORT or unix:PATH")
    chosen = str(options["profile"] or "auto")
    frozen = chosen.endswith(".toml")
    if not frozen and chosen not in {"auto", *profiles.names()}:
        raise KvrefError(f"no profile {chosen!r}{choices(chosen, ('auto', *profiles.names()))}")
    name = target or EMBEDDED
    # Check that the target has a profile before starting it.
    catalogue.profile_of(name)
    server_options = () if frozen or chosen == "auto" else catalogue.options_for(name, chosen)
    if jobs is None:
        # A run of few cases is not worth further instances.
        few = any(options.get(name) for name in ("chapter", "only", "last_broken", "dry_run", "replay"))
        jobs = 1 if target or few else JOBS
    count = int(str(jobs))
    _check_chapters(options)
    with ExitStack() as stack:
        progress = stack.enter_context(targets.Terminal())
        booted = [stack.enter_context(targets.private(name, server_options, progress)) for _ in range(count)]
        address = booted[0].target.memcached()
        endpoint = f"the target {target}" if target else f"no address given: the embedded server ({EMBEDDED})"
        click.echo(f"{endpoint}, {address}{f' and {count - 1} more' if count > 1 else ''}")
        options["again"] = f"--target {target}" if target else ""
        return run_suite(address, _filled_in(options, booted[0].target), Booted(booted, options))


def _check_chapters(options: Options) -> None:
    """Raise KvrefError for a chapter that the suite lacks, before anything is started."""
    chapters = options.get("chapter")
    for name in chapters if isinstance(chapters, tuple) else ():
        if name not in requirements.CHAPTERS:
            raise KvrefError(
                f"{name!r} is neither HOST:PORT or unix:PATH nor a chapter{choices(name, requirements.CHAPTERS)}"
            )


class Booted:
    """Answers the hooks of the suite for instances of a target that were booted for it.

    Args:
        instances: equal ones; the first is the endpoint.
        options: of the run.
    """

    def __init__(self, instances: Sequence[targets.Private], options: Options) -> None:
        self._instances = {each.target.memcached(): each for each in instances}
        self._options = options

    @pytest.hookimpl
    def pytest_kvref_instances(self) -> list[Instance]:
        """Return all but the first."""
        from kvref_conformance.running.parallel import Instance  # noqa: PLC0415 - the judge is loaded by pytest alone

        further = list(self._instances.items())[1:]
        filled = [(address, _filled_in(self._options, each.target)) for address, each in further]
        return [Instance(address, _text(known["sql"]), _text(known["reload"])) for address, known in filled]

    @pytest.hookimpl
    def pytest_kvref_restart(self, address: str, settings: Mapping[str, int]) -> str:
        """Start an instance again; "" when it answers, or why it refuses the settings."""
        booted = self._instances[address]
        try:
            booted.restart(settings)
        except KvrefError as refusal:
            if settings:
                booted.restart({})
            return str(refusal)
        return ""


def _text(value: Option) -> str | None:
    return None if value is None else str(value)


def run_suite(address: str, options: Options, *plugins: object) -> int:
    """Run the suite against an endpoint in this process.

    Args:
        address: HOST:PORT or unix:PATH.
        options: of the suite's pytest plugin, by name; None: the suite's default.
        plugins: further ones of pytest, with hooks of the suite.

    Returns:
        The exit code: 0 conforms, 1 deviates, 2 could not judge, 130 interrupted.
    """
    spec = find_spec(SUITE)
    if spec is None or spec.origin is None:
        raise KvrefError(f"the package {SUITE} is missing: reinstall kvref")
    folder = Path(spec.origin).parent
    # By path, not by name: for a name pytest would read a conftest.py of the working directory.
    arguments = [str(folder / "cases"), "-p", f"{SUITE}.plugin", "-p", "no:terminal", "-p", "no:cacheprovider", "-s"]
    arguments += ["-c", str(folder / "suite.toml"), f"--rootdir={folder}", f"--confcutdir={folder}"]
    arguments += [f"--endpoint={address}"]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            arguments.append(flag)
        elif value is not None and value is not False:
            arguments += [f"{flag}={each}" for each in (value if isinstance(value, tuple) else (value,))]
    interruption = _Interruption()
    with _without_foreign_settings():
        code = int(pytest.main(arguments, plugins=[*plugins, interruption]))
    return INTERRUPTED if interruption.happened else code


class _Interruption:
    """Takes note of Ctrl-C, for which pytest has the exit code 2."""

    def __init__(self) -> None:
        self.happened = False

    @pytest.hookimpl
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Tell Ctrl-C from an error that ends the run."""
        self.happened = excinfo.errisinstance(KeyboardInterrupt)


def _with_what_is_known(address: str, options: Options) -> Options:
    target = targets.find(address)
    if target is None:
        return options
    filled = _filled_in(options, target)
    taken = ", ".join(f"--{name} {value}" for name, value in filled.items() if value != options[name])
    click.echo(f"{address} is the target {target.name}{f': using {taken}' if taken else ''}")
    return filled


def _filled_in(options: Options, target: targets.Target) -> Options:
    # The suite itself reloads a plugin over SQL; kvref reloads its configuration tables on SIGHUP.
    reload = reload_command(target.folder) if target.store is not None else None
    known: Options = {"sql": target.sql or target.store, "profile": target.profile, "reload": reload}
    return {name: known.get(name) if value is None else value for name, value in options.items()}


@contextmanager
def _without_foreign_settings() -> Iterator[None]:
    before = dict(os.environ)
    for name in FOREIGN:
        os.environ.pop(name, None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
