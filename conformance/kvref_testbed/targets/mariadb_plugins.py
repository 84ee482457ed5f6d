"""Plugins of MariaDB that Debian has in packages whose installation would start a server of the machine's own.

A package whose plugin is not installed is fetched and unpacked, once a version.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvref_testbed.targets.folders import build_once, cache_root, run_in
from kvref_testbed.targets.needs import MissingError, tool

if TYPE_CHECKING:
    from kvref_testbed.targets.progress import Progress

_PLUGINS: Final = Path("usr/lib/mysql/plugin")


def options(package: str, plugin: str, progress: Progress) -> list[str]:
    """Return the options of a mariadbd that loads a plugin.

    package: of Debian.
    plugin: the name of its file, without `.so`.
    Raises MissingError.
    """
    return [
        f"--plugin-dir={_folder(package, plugin, progress)}",
        "--plugin-maturity=beta",
        f"--plugin-load-add={plugin}",
    ]


def _folder(package: str, plugin: str, progress: Progress) -> Path:
    installed = Path("/") / _PLUGINS
    if (installed / f"{plugin}.so").exists():
        return installed
    command = [tool("dpkg-query"), "-W", "-f", "${Version}", "mariadb-server-core"]
    version = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    if not version:
        raise MissingError(
            f"the installed MariaDB version is unknown, so no version of {plugin} can be chosen: apt-get install"
            " mariadb-server-core"
        )
    folder = cache_root() / "servers" / f"mariadb-{plugin}-{version.replace(':', '_')}"
    return build_once(folder, lambda empty: _fetch(f"{package}={version}", f"{plugin}.so", empty, progress), progress)


def _fetch(package: str, file: str, folder: Path, progress: Progress) -> None:
    progress.step(f"fetching {package} for {file} (once)")
    fetch = [tool("apt-get"), "download", "-q", package]
    done = run_in(folder, fetch)
    packages = list(folder.glob("*.deb"))
    if done.returncode or not packages:
        raise MissingError(
            f"{' '.join(fetch)} ended with {done.returncode}: {done.stdout.strip()}\n"
            "Debian may have another version now: apt-get update && apt-get install mariadb-server-core"
        )
    unpacked = folder / "unpacked"
    subprocess.run([tool("dpkg-deb"), "-x", str(packages[0]), str(unpacked)], check=True)
    shutil.move(unpacked / _PLUGINS / file, folder / file)
    shutil.rmtree(unpacked)
    packages[0].unlink()
