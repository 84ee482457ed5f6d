"""A server of another Debian release, in a folder that holds that release: made by debootstrap, entered by chroot.

Only root may do either. Each server gets a mount namespace of its own, in which the folder it may write to is mounted
at the same place, so that any number of them run out of one tree and the kernel unmounts when one is gone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kvref_testbed.targets.folders import build_once, cache_root
from kvref_testbed.targets.needs import MissingError, tool
from kvref_testbed.targets.program import version_of

if TYPE_CHECKING:
    from kvref_testbed.targets.progress import Progress

# Every Debian release has this folder, empty, for mounting something for a while (hier(7)).
_MOUNT_POINT = Path("/mnt")
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# $1: the folder to write to, $2: the tree, then the server and its options. Each step replaces the one before, so the
# process that was started is the server in the end. The environment is the tree's: TMPDIR need not exist there.
_ENTER = f'mount --bind "$1" "$2{_MOUNT_POINT}" && shift && exec env -i PATH={_PATH} chroot "$@"'
# Mounts made inside stay inside; what the machine unmounts meanwhile does not stay mounted here (unshare(1)).
_OWN_MOUNTS = ("--mount", "--propagation", "slave")
_LAST_LINES = 10


@dataclass(frozen=True, slots=True)
class Package:
    """A Debian package with a server program, and the release that has it.

    suite: of Debian, e.g. `sid`.
    program: path of the server, in the tree.
    version: how the server's version must begin, up to a dot; a suite that moves on has another one day.
    """

    suite: str
    name: str
    program: str
    version: str


@dataclass(frozen=True, slots=True)
class ShutIn:
    """A program that sees nothing but its tree and the folder it may write to; see `program.Program`.

    root: the tree.
    path: of the program, in the tree.
    """

    key: str
    root: Path
    path: str
    base: Path = Path("/usr")

    def command(self, folder: Path) -> list[str]:
        """Return the words that mount the folder, enter the tree and run the program."""
        return [tool("unshare"), *_OWN_MOUNTS, "/bin/sh", "-c", _ENTER, "sh", str(folder), str(self.root), self.path]

    def seen(self, folder: Path) -> Path:  # noqa: ARG002 -- the same for every folder
        """Return the place where the folder is mounted."""
        return _MOUNT_POINT


def from_debian(package: Package, progress: Progress) -> ShutIn:
    """Return the server of a package of another Debian release, installing that release in the cache the first time.

    Raises MissingError without root's rights, a tool or a mirror, and when the release has another version.
    """
    label = f"{package.name} of Debian {package.suite}"
    if os.geteuid() != 0:
        raise MissingError(f"{label} runs in a chroot that debootstrap makes, and only root may do either: run as root")
    for each in ("debootstrap", "unshare", "mount", "chroot"):
        tool(each)
    folder = cache_root() / "servers" / f"debian-{package.suite}-{package.name}-{package.version}"
    root = build_once(folder, lambda empty: _install(package, empty, progress), progress)
    return ShutIn(f"{package.name}-{_version(root, package)}", root, package.program)


def _version(root: Path, package: Package) -> str:
    return version_of([tool("chroot"), str(root), package.program])


def _install(package: Package, folder: Path, progress: Progress) -> None:
    source = mirror()
    progress.step(f"installing {package.name} of Debian {package.suite} from {source} (once, about a minute)")
    command = [
        # debootstrap mounts /proc and more; were it killed, they would stay mounted in a folder to be removed.
        *(tool("unshare"), *_OWN_MOUNTS),
        *(tool("debootstrap"), "--variant=minbase", "--force-check-gpg", f"--include={package.name}"),
        *(package.suite, str(folder), source),
    ]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode != 0:
        last = "\n".join(done.stdout.decode(errors="replace").splitlines()[-_LAST_LINES:])
        raise MissingError(
            f"debootstrap could not install {package.name} (status {done.returncode}):\n{last}\n"
            f"Try it: {' '.join(command)}"
        )
    # What apt keeps for next time: a fifth of the tree.
    for kept in ("var/cache/apt/archives", "var/lib/apt/lists"):
        shutil.rmtree(folder / kept)
    found = _version(folder, package)
    if not found.startswith(f"{package.version}."):
        raise MissingError(
            f"Debian {package.suite} has {package.name} {found} now and no {package.version}: "
            "this target needs a mirror of an earlier day, or a new name in kvref_testbed/targets/builds.py"
        )


def mirror() -> str:
    """Return the address of the Debian archive that this machine's apt uses. Raises MissingError when it uses none."""
    wanted = ("Created-By: Packages", "Origin: Debian", "Label: Debian")
    done = subprocess.run(
        [tool("apt-get"), "indextargets", "--format", "$(REPO_URI)", *wanted],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    # debootstrap knows fewer ways to fetch than apt.
    found = [each for each in done.stdout.split() if each.startswith(("http://", "https://", "file:/"))]
    if not found:
        raise MissingError(
            "apt knows no Debian archive to install another release from: run apt-get update; on other systems than "
            "Debian this target cannot be had"
        )
    return found[0]
