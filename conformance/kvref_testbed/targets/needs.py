"""What a target needs from the machine, and the command that installs it where it is missing.

Package names are Debian's; every text that names one comes from here.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from kvref.errors import TargetError

# Tool -> Debian package.
_TOOLS = {
    "mvn": "maven",
    "java": "default-jre-headless",
    "memcached": "memcached",
    "memcaslap": "libmemcached-tools",
    "etcd": "etcd-server",
    "sysbench": "sysbench",
    "nutcracker": "nutcracker",
    "yrmcdsd": "yrmcds",
    "node": "nodejs",
    "npm": "npm",
    "mariadbd": "mariadb-server-core",
    "mariadb": "mariadb-client-core",
    "mariadb-dump": "mariadb-client",
    "debootstrap": "debootstrap",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "dpkg-query": "dpkg",
    "chroot": "coreutils",
    "mount": "mount",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "ip": "iproute2",
}
# What a server loads from where its package puts it -> Debian package.
_FILES = {Path("/usr/lib/galera/libgalera_smm.so"): "galera-4"}
# Servers stand in a folder that Debian leaves out of an ordinary user's PATH.
_SERVERS = "/usr/sbin"
# Shared libraries that the MySQL builds take from the system. One that is missing is seldom alone: install all.
_MYSQLD_LIBRARIES = {"libaio.so.1", "libnuma.so.1", "libncurses.so.5", "libtinfo.so.5"}
_MYSQLD_PACKAGES = "libaio1 libnuma1 libncurses5"

# What the dynamic loader of glibc prints before the program's first instruction.
_LOADER = re.compile(r"error while loading shared libraries: (?P<library>[^:\s]+):")


class MissingError(TargetError):
    """The machine lacks a tool, a library or an artifact, or its user a right; the text says how to get it."""


def tool(name: str) -> str:
    """Find an installed program, in PATH or among the servers.

    name: as typed in a shell; one of the table above.
    Returns its path. Raises MissingError naming the command that installs it.
    """
    path = shutil.which(name) or shutil.which(name, path=_SERVERS)
    if path is None:
        raise MissingError(f"{name!r} is not installed or not in PATH: apt-get install {_TOOLS[name]}")
    return path


def file(name: str) -> Path:
    """Find an installed file of the table above by its last part. Raises MissingError as `tool`."""
    path, package = next((path, package) for path, package in _FILES.items() if path.name == name)
    if not path.exists():
        raise MissingError(f"{path} is missing: apt-get install {package}")
    return path


def missing_library(printed: str) -> MissingError | None:
    """Find the dynamic loader's complaint in what a program printed.

    Returns the error to raise, or None when the program failed for another reason.
    """
    found = _LOADER.search(printed)
    if found is None:
        return None
    library = found["library"]
    if library in _MYSQLD_LIBRARIES:
        return MissingError(f"the shared library {library} is missing: apt-get install {_MYSQLD_PACKAGES}")
    return MissingError(
        f"the shared library {library} is missing: install the package that holds it (apt-file search {library})"
    )
