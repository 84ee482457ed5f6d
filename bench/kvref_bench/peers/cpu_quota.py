"""A share of a processor for a process, as if its machine were slower: control groups of Linux, version 1 or 2."""

from __future__ import annotations

import errno
import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTROL_GROUPS: Final = Path("/sys/fs/cgroup")
PERIOD: Final = 25_000  # microseconds, in each of which a process may use its share
LEAST: Final = 0.04  # a quota is one millisecond or more
PATIENCE: Final = 5.0  # seconds in which a process that was killed ends


@contextmanager
def limited(pid: int, share: float, root: Path = CONTROL_GROUPS) -> Iterator[None]:
    """Let a process with all its threads use a share of one processor during the block.

    Args:
        pid: of the process; its children, as far as they exist, are not limited.
        share: of one processor, `LEAST` or more; 1.5 is one and a half.
        root: of the control groups.

    Raises:
        BenchError: the share is too small, or the machine has no control groups that this user may change.
    """
    if share < LEAST:
        raise BenchError(f"{share:g} of a processor is less than the kernel can give: choose {LEAST:g} or more")
    quota = round(PERIOD * share)
    parent, limits = root, {"cpu.max": f"{quota} {PERIOD}"}
    if (root / "cpu").is_dir():  # version 1 has a hierarchy for each controller
        parent, limits = root / "cpu", {"cpu.cfs_period_us": f"{PERIOD}", "cpu.cfs_quota_us": f"{quota}"}
    group = parent / f"kvref-{os.getpid()}-{pid}"
    try:
        (parent / "cgroup.procs").read_bytes()
        group.mkdir()
    except OSError as error:
        raise BenchError(_unavailable(error)) from error
    try:
        try:
            for name, text in limits.items():
                with (group / name).open("r+", encoding="ascii") as file:  # it is not created where it is missing
                    file.write(text)
            (group / "cgroup.procs").write_text(f"{pid}", encoding="ascii")
        except OSError as error:
            raise BenchError(_unavailable(error)) from error
        yield
    finally:
        _remove(group, parent)


def _remove(group: Path, parent: Path) -> None:
    """Move the processes of a group to the one above it, and remove it; a process belongs to it until it has ended."""
    ends = time.monotonic() + PATIENCE
    while True:
        for pid in (group / "cgroup.procs").read_text(encoding="ascii").split():
            with suppress(ProcessLookupError):  # it has ended
                (parent / "cgroup.procs").write_text(pid, encoding="ascii")
        try:
            group.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > ends:
                raise
            time.sleep(PERIOD / 1e6)
        else:
            return


def _unavailable(error: OSError) -> str:
    return f"a limit of CPU time needs root and Linux's control groups with the controller cpu: {error}"
