"""The server builds that come as Maven artifacts: pinned, found or downloaded, checked.

Maven does the downloading, so its mirrors, proxies and credentials apply. What is done with the file: `unpack.py`.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kvref.errors import TargetError
from kvref_testbed.targets.folders import cache_root, locked
from kvref_testbed.targets.needs import MissingError, tool

if TYPE_CHECKING:
    from kvref_testbed.targets.progress import Progress

_CHUNK = 1 << 20
_POLL = 0.2


@dataclass(frozen=True, slots=True)
class Artifact:
    """One zip in Maven's naming, and what it must be.

    size: bytes; for the progress bar.
    sha256: of the zip, hexadecimal; what is trusted.
    keep: patterns (fnmatch, `*` crosses slashes) of the members worth unpacking; each must match something.
    """

    group: str
    name: str
    version: str
    classifier: str
    size: int
    sha256: str
    keep: tuple[str, ...]

    @property
    def coordinate(self) -> str:
        """Return the coordinate as Maven's dependency:get takes it."""
        return f"{self.group}:{self.name}:{self.version}:zip:{self.classifier}"

    def path_in(self, repository: Path) -> Path:
        """Return the path Maven's default repository layout gives the zip."""
        file = f"{self.name}-{self.version}-{self.classifier}.zip"
        return repository.joinpath(*self.group.split("."), self.name, self.version, file)


def zip_file(artifact: Artifact, progress: Progress) -> Path:
    """Find the zip in the cache or in the user's own Maven repository, or download it; check it.

    Returns its path. Raises MissingError when it cannot be had, TargetError when it is not what was pinned.
    """
    ours = cache_root() / "maven"
    places = [artifact.path_in(ours), artifact.path_in(Path.home() / ".m2" / "repository")]
    found = next((each for each in places if each.is_file()), None)
    if found is None:
        with locked(ours / "kvref.lock", progress):
            # Another process may have finished it while this one waited for the lock.
            if not places[0].is_file():
                _download(artifact, ours, progress)
        found = places[0]
    _check(artifact, found, progress)
    return found


def _download(artifact: Artifact, repository: Path, progress: Progress) -> None:
    command = [
        tool("mvn"),
        "-q",
        "-B",
        "dependency:get",
        "-Dtransitive=false",
        f"-Dartifact={artifact.coordinate}",
        f"-Dmaven.repo.local={repository}",
    ]
    final = artifact.path_in(repository)
    progress.step(f"downloading {artifact.coordinate} ({artifact.size / 1e6:.0f} MB)")
    with tempfile.TemporaryFile() as printed:
        status = _run_watched(command, printed, final, artifact.size, progress)
        printed.seek(0)
        said = printed.read().decode(errors="replace")
    if status != 0 or not final.is_file():
        last = "\n".join(said.splitlines()[-5:])
        raise MissingError(
            f"Maven could not get {artifact.coordinate} (status {status}):\n{last}\nTry it: {' '.join(command)}"
        )


def _run_watched(command: list[str], printed: IO[bytes], final: Path, size: int, progress: Progress) -> int:
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT) as maven:
        try:
            while maven.poll() is None:
                # Maven writes next to the final name, with a suffix that depends on its version (`.part`).
                growing = [each.stat().st_size for each in final.parent.glob(f"{final.name}*")]
                progress.advance(final.name, max(growing, default=0), size)
                time.sleep(_POLL)
        except BaseException:
            maven.terminate()
            raise
        return maven.returncode


def _check(artifact: Artifact, path: Path, progress: Progress) -> None:
    total = path.stat().st_size
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as content:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            progress.advance(f"checking {path.name}", done, total)
    if digest.hexdigest() != artifact.sha256:
        raise TargetError(
            f"{path} is not {artifact.coordinate}: its sha256 is {digest.hexdigest()}, expected is"
            f" {artifact.sha256}: delete the file and try again to download it"
        )
