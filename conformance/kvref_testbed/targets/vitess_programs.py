"""Programs of Vitess, built from its Go module, and the words that start them as another user than root."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvref.errors import TargetError
from kvref_testbed.targets.folders import build_once, cache_root, run_in
from kvref_testbed.targets.needs import MissingError, tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_testbed.targets.progress import Progress

VERSION: Final = "v0.24.4"
_MODULE: Final = f"vitess.io/vitess@{VERSION}"
_SUM: Final = "h1:fjIFc28fGYF6Bxu4heHsKvx+huPbA4NmIeLJL4clbc8="  # of the module, as go.sum has it
_GO: Final = "1.26"
_COMBINED: Final = "vtcombo"
_SEPARATE: Final = ("vtctld", "vtctldclient", "vtgate", "vttablet")
# What is not used here, and is half of the packages: exporters of traces, and storage of backups in clouds.
_UNUSED: Final = (
    "go/trace/plugin_*.go",
    "go/cmd/**/plugin_opentracing.go",
    "go/cmd/**/plugin_azblobbackupstorage.go",
    "go/cmd/**/plugin_gcsbackupstorage.go",
    "go/cmd/**/plugin_s3backupstorage.go",
)
_LAST_LINES: Final = 10
# It refuses to run as root: in a user namespace it is another user, and has the rights of this one on its files only.
_AS_OTHER_USER: Final = ("--user", "--map-user=1000")


def program(progress: Progress) -> Path:
    """Return vtcombo, building it the first time. Raises MissingError where it cannot be built."""
    return _built(f"vitess-{VERSION}", [_COMBINED], progress) / _COMBINED


def programs(progress: Progress) -> Path:
    """Return the folder of the programs of a cluster; see `program`."""
    return _built(f"vitess-{VERSION}-cluster", _SEPARATE, progress)


def _built(name: str, commands: Sequence[str], progress: Progress) -> Path:
    folder = cache_root() / "servers" / name
    return build_once(folder, lambda empty: _build(empty, commands, progress), progress)


def _build(folder: Path, commands: Sequence[str], progress: Progress) -> None:
    go = shutil.which("go")
    if go is None:
        raise MissingError(f"'go' is not installed or not in PATH: install Go {_GO} or later to build Vitess")
    progress.step(f"building {', '.join(commands)} of Vitess {VERSION} (once, 6 minutes of two processors)")
    found = run_in(folder, [go, "mod", "download", "-json", _MODULE])
    if found.returncode:
        raise _unbuilt("downloaded", found.stdout)
    module = json.loads(found.stdout)
    if module["Sum"] != _SUM:
        raise TargetError(f"{_MODULE} has the checksum {module['Sum']}, expected is {_SUM}")
    with tempfile.TemporaryDirectory(prefix="kvref-vitess-") as temporary:
        # As the main module it has its own versions of everything, and `exclude`, which no other module may use.
        source = Path(temporary) / "vitess"
        shutil.copytree(module["Dir"], source, copy_function=shutil.copyfile)
        for pattern in _UNUSED:
            for each in source.glob(pattern):
                each.unlink()
        words = [go, "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", f"{folder}/"]
        built = run_in(source, [*words, *(f"./go/cmd/{each}" for each in commands)])
        if built.returncode:
            raise _unbuilt("built", built.stdout)
        shutil.copyfile(source / "LICENSE", folder / "LICENSE")


def _unbuilt(what: str, output: str) -> MissingError:
    last = "\n".join(output.splitlines()[-_LAST_LINES:])
    return MissingError(f"{_MODULE} could not be {what}:\n{last}")


def as_user() -> list[str]:
    """Return the words in front of a command that refuses to run as root; raises MissingError if there are none."""
    if os.geteuid() != 0:
        return []
    words = [tool("unshare"), *_AS_OTHER_USER]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        raise MissingError("Vitess refuses to run as root, and root may make no user namespace: run as another user")
    return words
