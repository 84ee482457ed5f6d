"""Programs that targets need: fetched, checked, unpacked or installed.

Maven does the downloading, so its mirrors, proxies and credentials apply. A program that is shut in a folder of its
own: `builds.py`. Who runs them: `mysqld.py`.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
import subprocess
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from kvref.errors import TargetError
from kvref_testbed.targets.folders import build_once, cache_root, locked
from kvref_testbed.targets.needs import MissingError, missing_library, tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_testbed.targets.progress import Progress

_CHUNK = 1 << 20
_POLL = 0.2


@dataclass(frozen=True, slots=True)
class Artifact:
    """One zip or jar in Maven's naming, and what it must be.

    classifier: empty for none.
    size: bytes; for the progress bar.
    sha256: of the file, hexadecimal; what is trusted.
    keep: patterns (fnmatch, `*` crosses slashes) of the members worth unpacking; each must match something.
    packaging: zip or jar.
    """

    group: str
    name: str
    version: str
    classifier: str
    size: int
    sha256: str
    keep: tuple[str, ...] = ()
    packaging: str = "zip"

    @property
    def coordinate(self) -> str:
        """Return the coordinate as Maven's dependency:get takes it."""
        return ":".join(filter(None, [self.group, self.name, self.version, self.packaging, self.classifier]))

    def path_in(self, repository: Path) -> Path:
        """Return the path Maven's default repository layout gives the file."""
        file = "-".join(filter(None, [self.name, self.version, self.classifier])) + f".{self.packaging}"
        return repository.joinpath(*self.group.split("."), self.name, self.version, file)


def fetched(artifact: Artifact, progress: Progress) -> Path:
    """Find the file in the cache or in the user's own Maven repository, or download it; check it.

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
        output = printed.read().decode(errors="replace")
    if status != 0 or not final.is_file():
        last = "\n".join(output.splitlines()[-5:])
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


def unpacked(artifact: Artifact, progress: Progress) -> Path:
    """Return the folder with the unpacked artifact, downloading and unpacking it the first time.

    Raises what `artifacts.fetched` raises, and TargetError if the zip lacks a member that `keep` names.
    """

    def build(folder: Path) -> None:
        file = fetched(artifact, progress)
        extract(file, artifact.keep, folder, progress)

    return build_once(cache_root() / "servers" / _key(artifact), build, progress)


def extract(file: Path, keep: tuple[str, ...], folder: Path, progress: Progress) -> None:
    """Write the members of a zip that a pattern keeps.

    keep: see `Artifact`.
    Raises TargetError when a pattern matches nothing.
    """
    with zipfile.ZipFile(file) as archive:
        files = [each for each in archive.infolist() if not each.is_dir()]
        for pattern in keep:
            if not any(fnmatch.fnmatchcase(each.filename, pattern) for each in files):
                raise TargetError(f"{file} holds nothing like {pattern!r}: correct `keep` of its artifact")
        chosen = re.compile("|".join(fnmatch.translate(pattern) for pattern in keep))
        wanted = [each for each in files if chosen.match(each.filename)]
        total = sum(each.file_size for each in wanted)
        done = 0
        for member in wanted:
            for size in _write(archive, member, folder):
                done += size
                progress.advance(f"unpacking {file.name}", done, total)


def _write(archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path) -> Iterator[int]:
    # Names are taken as they are: the zip's checksum is pinned, so it holds no `../`.
    path = folder / member.filename
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as source, path.open("wb") as target:
        while chunk := source.read(_CHUNK):
            target.write(chunk)
            yield len(chunk)
    # Unix permissions stand in the upper half (APPNOTE 4.4.15), but not every build of a zip fills them in.
    executable = (member.external_attr >> 16) & 0o111 or member.filename.startswith("bin/")
    path.chmod(0o755 if executable else 0o644)


def _key(artifact: Artifact) -> str:
    # Another zip or another choice of members is another folder; old ones are left to whoever empties the cache.
    content = "\n".join([artifact.sha256, *artifact.keep])
    return f"{artifact.name}-{artifact.version}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"


# `/usr/sbin/mariadbd  Ver 10.11.14-MariaDB-0+deb12u2 for debian-linux-gnu`
_VERSION = re.compile(r"\b(?:Ver|memcached) (?P<version>\S+)")


class Program(Protocol):
    """A mysqld that can be run. Implementations: here and in `builds.py`."""

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


# As mysqld prints its version, whatever configuration file the machine has.
MYSQLD_VERSION = ("--no-defaults", "--version")


def version_of(command: Sequence[str], options: Sequence[str] = MYSQLD_VERSION) -> str:
    """Return the version of a server program without starting the server; e.g. `10.11.14-MariaDB-0+deb12u2`.

    command: runs it.
    options: make it print its version. Raises MissingError for a library, TargetError if it prints no version.
    """
    arguments = [*command, *options]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output = done.stdout.decode(errors="replace")
    found = _VERSION.search(output)
    if done.returncode != 0 or found is None:
        raise missing_library(output) or TargetError(f"{' '.join(arguments)} exited with {done.returncode}:\n{output}")
    return found["version"]
