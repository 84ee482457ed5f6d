"""MariaDB's HandlerSocket: the plugin's file, and the options with which a server has it.

Debian has it in `mariadb-server`, whose installation would start a server of the machine's own: where it is not
installed the package is fetched and unpacked, once a version.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvref_testbed.targets.folders import build_once, cache_root, run_in
from kvref_testbed.targets.needs import MissingError, tool
from kvref_testbed.targets.ports import LOOPBACK

if TYPE_CHECKING:
    from kvref_testbed.targets.progress import Progress

_PLUGINS: Final = Path("usr/lib/mysql/plugin")
_FILE: Final = "handlersocket.so"
# MariaDB's threads keep the level of their start: what is set afterwards is that of everybody else.
LEVEL: Final = "READ-UNCOMMITTED"
AS_USUAL: Final = "SET GLOBAL tx_isolation = 'REPEATABLE-READ'"


def options(port: int, secret: str, progress: Progress, level: str = LEVEL) -> list[str]:
    """Return the options of a mariadbd that answers HandlerSocket's questions on loopback.

    port: for reading; that for writing is left out.
    secret: which a client must show.
    level: of isolation, as all sessions have it until AS_USUAL is said.
    Raises MissingError.
    """
    return [
        f"--plugin-dir={_folder(progress)}",
        "--plugin-maturity=beta",
        "--plugin-load-add=handlersocket",
        f"--handlersocket-address={LOOPBACK}",
        f"--handlersocket-port={port}",
        "--handlersocket-threads=2",
        # Without one, this build requires an unknown secret.
        f"--handlersocket-plain-secret={secret}",
        f"--transaction-isolation={level}",
    ]


def _folder(progress: Progress) -> Path:
    installed = Path("/") / _PLUGINS
    if (installed / _FILE).exists():
        return installed
    asked = [tool("dpkg-query"), "-W", "-f", "${Version}", "mariadb-server-core"]
    version = subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    if not version:
        raise MissingError(
            "the installed MariaDB version is unknown, so no HandlerSocket version can be chosen: apt-get"
            " install mariadb-server-core"
        )
    folder = cache_root() / "servers" / f"mariadb-handlersocket-{version.replace(':', '_')}"
    return build_once(folder, lambda empty: _fetch(version, empty, progress), progress)


def _fetch(version: str, folder: Path, progress: Progress) -> None:
    package = f"mariadb-server={version}"
    progress.step(f"fetching {package} for {_FILE} (once, 4 MB)")
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
    shutil.move(unpacked / _PLUGINS / _FILE, folder / _FILE)
    shutil.rmtree(unpacked)
    packages[0].unlink()
