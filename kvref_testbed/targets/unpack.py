"""Unpack what is needed of an artifact into the cache, once."""

from __future__ import annotations

import fnmatch
import hashlib
import re
import zipfile
from typing import TYPE_CHECKING

from kvref.errors import TargetError
from kvref_testbed.targets.artifacts import zip_file
from kvref_testbed.targets.folders import build_once, cache_root

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kvref_testbed.targets.artifacts import Artifact
    from kvref_testbed.targets.progress import Progress

_CHUNK = 1 << 20


def unpacked(artifact: Artifact, progress: Progress) -> Path:
    """Return the folder with the unpacked artifact, downloading and unpacking it the first time.

    Raises what `artifacts.zip_file` raises, and TargetError if the zip lacks a member that `keep` names.
    """

    def build(folder: Path) -> None:
        file = zip_file(artifact, progress)
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
