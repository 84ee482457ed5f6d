"""A file system of a few MiB that a server sees, in its own namespace: it goes when its holder ends."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kvref_testbed.targets import MissingError

_HOLD = 'mount -t tmpfs -o "size=$2" none "$1" && echo ready && exec cat'


@dataclass(frozen=True)
class Disk:
    """A file system.

    Args:
        folder: where a program in the namespace finds it.
        seen: the same from here.
        through: words that start a program in the namespace.
    """

    folder: Path
    seen: Path
    through: tuple[str, ...]

    def fill(self) -> None:
        """Leave no byte free."""
        with (self.seen / "ballast").open("ab", buffering=0) as ballast:
            for size in (1 << 16, 1 << 10, 1):
                while True:
                    try:
                        ballast.write(bytes(size))
                    except OSError:
                        break

    def free(self) -> None:
        """Take back what `fill` took."""
        (self.seen / "ballast").unlink()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Disk]:
    """Mount a file system for the block.

    Args:
        folder: an empty folder, the mount point.
        size: as mount(8) takes it, e.g. `64m`.

    Raises:
        MissingError: such a namespace needs root here, or is not available at all.
    """
    root = os.geteuid() == 0
    user = [] if root else ["--user", "--map-root-user"]
    holder = subprocess.Popen(
        ["unshare", "--mount", *user, "sh", "-c", _HOLD, "hold", str(folder), size],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline() != "ready\n":
            raise MissingError(f"no small file system, as root or in a user namespace: {holder.stderr.read().strip()}")
        enter = ["nsenter", "--target", str(holder.pid), "--mount"]
        enter += [] if root else ["--user", "--preserve-credentials"]
        yield Disk(folder, Path(f"/proc/{holder.pid}/root{folder}"), tuple(enter))
        assert holder.stdin is not None
        holder.stdin.close()
