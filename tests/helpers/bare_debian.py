"""A bare Debian 12 in a folder, with what a container has of its host: names of hosts, package sources and certificates."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from helpers.live import missing_skips
from kvref_testbed.targets import MissingError
from kvref_testbed.targets.builds import mirror
from kvref_testbed.targets.needs import tool

OF_THE_HOST = ("/etc/resolv.conf", "/etc/apt/sources.list", "/etc/apt/sources.list.d")
# Certificates that the host trusts, if its environment names them, in a place that no package writes.
TRUSTED = {"/etc/ssl/certs/ca-certificates.crt": "/trusted.crt"}


def bare_debian(root: Path) -> None:
    """Make a bare Debian 12 by debootstrap; skip the test without root's rights or a tool."""
    with missing_skips():
        if os.geteuid() != 0:
            raise MissingError("debootstrap and chroot need root's rights: run as root")
        debootstrap = [tool("debootstrap"), "--variant=minbase", "bookworm", str(root), mirror()]
        subprocess.run([tool("unshare"), "--mount", *debootstrap], check=True, stdout=subprocess.DEVNULL)
    for name in OF_THE_HOST:
        if Path(name).exists():
            shutil.rmtree(root / name[1:], ignore_errors=True)
            (root / name[1:]).parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-aLT", name, str(root / name[1:])], check=True)
    for name, goal in TRUSTED.items():
        shutil.copy(name, root / goal[1:])


def environment() -> dict[str, str]:
    """Return the environment of programs in a bare Debian: the one of the host, with the place of its certificates."""
    return {name: TRUSTED.get(value, value) for name, value in os.environ.items()}
