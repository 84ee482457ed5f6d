"""The targets that `up` left running: one JSON file each in the state folder, named after the target.

A file is written whole or not at all and read without trust. Who decides what it means: `lifecycle.py`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kvref import documents
from kvref.errors import TargetError
from kvref_testbed.targets.folders import locked, state_root
from kvref_testbed.targets.process import Process
from kvref_testbed.targets.run import Run
from kvref_testbed.targets.target import Target

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from kvref_testbed.targets.progress import Progress


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
            f"the state file {file} cannot be read ({error}): stop its server, if one runs, and delete the file"
        ) from error
    return Record(target, options, processes)


def forget(name: str) -> None:
    """Remove a target's state file."""
    path(name).unlink(missing_ok=True)
