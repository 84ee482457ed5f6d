"""Where kvref keeps things between runs, and how two processes may build the same thing without harm.

Cache: artifacts, unpacked servers, initialised data folders; may be deleted while no target runs.
State: one file a running target.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from kvref.errors import TargetError, cause_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kvref_testbed.targets.progress import Progress


def cache_root() -> Path:
    """Return the cache folder: the environment's KVREF_CACHE, or the user's cache folder for kvref."""
    return _root("KVREF_CACHE", platformdirs.user_cache_path("kvref"))


def state_root() -> Path:
    """Return the state folder: the environment's KVREF_STATE, or the user's state folder for kvref."""
    return _root("KVREF_STATE", platformdirs.user_state_path("kvref"))


def _root(variable: str, default: Path) -> Path:
    value = os.environ.get(variable)
    # Absolute, because servers outlive the working directory of the command that started them.
    return Path(value).absolute() if value else default


@contextmanager
def locked(path: Path, progress: Progress) -> Iterator[None]:
    """Hold the lock file exclusively; the kernel releases it when its holder dies, however that happens."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("w")
    except OSError as error:
        raise TargetError(
            f"{path.parent} cannot be written ({cause_of(error)}); set KVREF_CACHE or KVREF_STATE"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.step(f"waiting for another kvref process (lock {path})")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_once(folder: Path, build: Callable[[Path], None], progress: Progress) -> Path:
    """Make a folder that exists complete or not at all, whoever else makes it at the same time.

    folder: the folder of the result; its name contains everything that its content depends on.
    build: fills the empty folder it is given.
    Returns `folder`. Raises TargetError when the disk refuses, and whatever `build` raises.
    """
    if folder.is_dir():
        return folder
    with locked(folder.with_name(f"{folder.name}.lock"), progress):
        if folder.is_dir():
            return folder
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        # Only a process that died while building leaves one behind: whoever builds holds the lock.
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            unfinished.mkdir()
            build(unfinished)
            unfinished.rename(folder)
        except OSError as error:
            raise TargetError(f"{folder} cannot be built: {cause_of(error)}") from error
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def run_in(folder: Path, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder to its end, whatever that is; `stdout` has all that it printed."""
    return subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
