"""The server programs that run where they stand: out of an unpacked artifact, or installed by a package of the machine.

One that is shut in a folder of its own: `debian_root.py`. Who runs them: `mysqld.py`.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kvref.errors import TargetError
from kvref_testbed.targets.needs import missing_library, tool
from kvref_testbed.targets.unpack import unpacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_testbed.targets.artifacts import Artifact
    from kvref_testbed.targets.progress import Progress

# `/usr/sbin/mariadbd  Ver 10.11.14-MariaDB-0+deb12u2 for debian-linux-gnu`
_VERSION = re.compile(r"\bVer (?P<version>\S+)")


class Program(Protocol):
    """A mysqld that can be run. Implementations: here and in `debian_root.py`."""

    @property
    def key(self) -> str:
        """Name the version, as part of a path: what is built from another version has another key."""

    @property
    def base(self) -> Path:
        """Return the folder of the installation, as the server sees it."""

    def command(self, folder: Path) -> list[str]:
        """Return the words that run it with a folder it may write to, its own options to follow."""

    def seen(self, folder: Path) -> Path:
        """Return the path under which the server sees that folder."""


@dataclass(frozen=True, slots=True)
class InPlace:
    """A program that sees the machine's own files; see `Program`.

    path: of the program.
    """

    key: str
    base: Path
    path: Path

    def command(self, folder: Path) -> list[str]:  # noqa: ARG002 -- it may write anywhere
        """Return the program's path."""
        return [str(self.path)]

    def seen(self, folder: Path) -> Path:
        """Return the folder itself."""
        return folder


def from_artifact(artifact: Artifact, progress: Progress) -> InPlace:
    """Return the mysqld of an artifact, unpacking it the first time. Raises what `unpack.unpacked` raises."""
    base = unpacked(artifact, progress)
    return InPlace(base.name, base, base / "bin" / "mysqld")


def from_package(name: str, _progress: Progress) -> InPlace:
    """Return a server that the machine's package manager installed under /usr.

    name: of the program. Raises MissingError when it is not there, naming its package.
    """
    path = Path(tool(name))
    return InPlace(f"{name}-{version_of([str(path)])}", Path("/usr"), path)


def version_of(command: Sequence[str]) -> str:
    """Return the version of a server program without starting the server; e.g. `10.11.14-MariaDB-0+deb12u2`.

    command: runs it. Raises MissingError for a library, TargetError if it prints no version.
    """
    asked = [*command, "--no-defaults", "--version"]
    done = subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    said = done.stdout.decode(errors="replace")
    found = _VERSION.search(said)
    if done.returncode != 0 or found is None:
        raise missing_library(said) or TargetError(f"{' '.join(asked)} exited with {done.returncode}:\n{said}")
    return found["version"]
