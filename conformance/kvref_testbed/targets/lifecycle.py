"""Boot, list and stop targets; the record of those that run.

A record is written whole or not at all and read without trust. The only module that joins `catalogue.py` (how a target
boots) and `run.py` (what runs).
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kvref import documents
from kvref.errors import TargetError, cause_of
from kvref_testbed.targets import catalogue, process
from kvref_testbed.targets.folders import locked, state_root
from kvref_testbed.targets.process import Process
from kvref_testbed.targets.progress import QUIET
from kvref_testbed.targets.run import Run, tail
from kvref_testbed.targets.target import Status, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.target import Endpoint, Recipe


@dataclass(frozen=True, slots=True)
class Record:
    """What the state folder knows of one target: the target, the options it was started with, its processes."""

    target: Target
    options: tuple[str, ...]
    processes: tuple[Process, ...]

    def run(self) -> Run:
        """Return the run again, to look at it or to stop it."""
        return Run(self.target.folder, self.processes)


def path(name: str) -> Path:
    """Return the path of a target's state file."""
    return state_root() / f"{name}.json"


def exclusive(name: str, progress: Progress) -> AbstractContextManager[None]:
    """Keep other kvref processes from starting or stopping this target meanwhile."""
    return locked(state_root() / f"{name}.lock", progress)


def write(record: Record) -> None:
    """Record a running target."""
    content = record.target.as_json() | {
        "options": list(record.options),
        "processes": [asdict(each) for each in record.processes],
    }
    file = path(record.target.name)
    # Renamed into place, since `status` reads without the lock.
    new = file.with_suffix(".new")
    new.write_text(json.dumps(content, indent=2) + "\n")
    new.rename(file)


def read(name: str) -> Record | None:
    """Read a target's state file.

    Returns None when there is none. Raises TargetError naming the file when its content is not what `write` wrote:
    which processes it described is then unknown, so nothing is guessed.
    """
    file = path(name)
    try:
        content = documents.read_json(file)
        processes = tuple(
            Process(each["name"], int(each["pid"]), int(each["started"])) for each in content.pop("processes")
        )
        options = tuple(content.pop("options"))
        # Null, or absent from files of before SQL servers had it.
        socket = content.get("socket")
        paths = {"log": Path(content["log"]), "folder": Path(content["folder"]), "socket": socket and Path(socket)}
        target = Target(**content | paths)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise TargetError(
            f"the state file {file} cannot be read ({cause_of(error)}): stop its server, if one runs, and delete the"
            " file"
        ) from error
    return Record(target, options, processes)


def forget(name: str) -> None:
    """Remove a target's state file."""
    path(name).unlink(missing_ok=True)


# MySQL takes 3 to 6 s from SIGTERM to its end.
_PATIENCE = 20.0


def names() -> tuple[str, ...]:
    """Return the names of the known targets."""
    return tuple(each.name for each in catalogue.recipes())


def up(name: str, options: Sequence[str] = (), progress: Progress = QUIET) -> Target:
    """Boot a target that stays after this process, unless it runs already.

    options: further options of its server, see its recipe.
    Returns the running target. Raises TargetError, also if it runs with other options than the requested ones.
    """
    recipe = catalogue.recipe(name)
    with exclusive(name, progress):
        record = read(name)
        if record is not None:
            run = record.run()
            if run.ended() is None:
                return _running_already(record, tuple(options), progress)
            progress.step(f"{name} had crashed ({_reason(record)}): cleaning up and restarting")
            run.stop(_PATIENCE)
            forget(name)
        run = Run.create()
        try:
            target = _target(recipe, run, recipe.boot(run, options, progress))
            write(Record(target, tuple(options), tuple(run.processes)))
        except BaseException:
            run.stop(0)
            raise
        run.keep()
        return target


def down(name: str, progress: Progress = QUIET) -> Target | None:
    """Stop a target and remove its folder.

    Returns what was stopped (or cleaned up after a crash), None when it was not running. Raises TargetError.
    """
    catalogue.recipe(name)
    with exclusive(name, progress):
        record = read(name)
        if record is None:
            return None
        record.run().stop(_PATIENCE)
        forget(name)
        return record.target


def status() -> list[Status]:
    """Look at every known target. Raises TargetError for a state file that cannot be read."""
    return [_status(name) for name in names()]


def find(address: str) -> Target | None:
    """Find the running target that listens at a memcached address.

    address: HOST:PORT; the host `localhost` is the loopback address.
    """
    host, _, port = address.rpartition(":")
    wanted = f"127.0.0.1:{port}" if host == "localhost" else address
    for each in status():
        if each.state == "running" and each.target is not None and each.target.address == wanted:
            return each.target
    return None


@dataclass
class Private:
    """A private instance; made by `private`.

    target: what runs now.
    """

    target: Target
    _run: Run
    _restart: Callable[[Mapping[str, int]], None] | None

    def restart(self, settings: Mapping[str, int]) -> None:
        """Start it again with these settings and no others, at the same address and on the same data.

        settings: by the plugin's own names; `kvref serve --set` has the same.
        Raises TargetError when it refuses them, or has none; one that refused does not run.
        """
        if self._restart is None:
            raise TargetError(f"the target {self.target.name} has no settings of batches and locks")
        self._restart(settings)
        self.target = replace(self.target, pid=self._run.processes[-1].pid)


@contextmanager
def private(name: str, options: Sequence[str] = (), progress: Progress = QUIET) -> Iterator[Private]:
    """Boot an instance as `running` does, that can be started again."""
    with booted(catalogue.recipe(name), options, progress) as instance:
        yield instance


@contextmanager
def booted(recipe: Recipe, options: Sequence[str] = (), progress: Progress = QUIET) -> Iterator[Private]:
    """Boot an instance as `private` does, of a recipe that the catalogue need not have."""
    run = Run.create()
    try:
        endpoint = recipe.boot(run, options, progress)
        yield Private(_target(recipe, run, endpoint), run, endpoint.restart)
    finally:
        run.stop(0)


@contextmanager
def running(name: str, options: Sequence[str] = (), progress: Progress = QUIET) -> Iterator[Target]:
    """Boot a private instance that no state file knows, and end it with the block, however the block ends.

    It is killed instead of shut down: its data are deleted anyway, and MySQL needs seconds to shut down.
    options: further options of its server, see its recipe. Raises TargetError.
    """
    with private(name, options, progress) as booted:
        yield booted.target


def _target(recipe: Recipe, run: Run, endpoint: Endpoint) -> Target:
    main = run.processes[-1]
    return Target(
        name=recipe.name,
        profile=recipe.profile,
        version=endpoint.version,
        address=endpoint.address,
        sql=endpoint.sql,
        socket=endpoint.socket,
        store=endpoint.store,
        pid=main.pid,
        log=run.log(main.name),
        folder=run.folder,
    )


def _running_already(record: Record, options: tuple[str, ...], progress: Progress) -> Target:
    name = record.target.name
    if options and options != record.options:
        given = " ".join(record.options) or "none"
        raise TargetError(f"{name} already runs with other options ({given}): `kvref target down {name}` first")
    progress.step(f"{name} already runs (pid {record.target.pid})")
    return record.target


def _status(name: str) -> Status:
    record = read(name)
    if record is None:
        return Status(name, "stopped")
    run = record.run()
    ended = run.ended()
    if ended is None:
        return Status(name, "running", record.target)
    exit_status = ended.exit_status(run.folder, patience=0.5)
    return Status(name, "crashed", record.target, _reason(record), exit_status, tail(run.log(ended.name)))


def _reason(record: Record) -> str:
    run = record.run()
    ended = run.ended()
    if ended is None:
        return "nothing ended"
    return f"{ended.name}, pid {ended.pid}, {process.describe(ended.exit_status(run.folder, patience=0.5))}"
