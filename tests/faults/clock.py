"""A clock of its own for a server, by libfaketime: it can be set while the server runs, and monotonic time stays real."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kvref_testbed.targets import MissingError

HOUR = 3600
YEAR = 366 * 24 * HOUR


@dataclass(frozen=True)
class Clock:
    """The clock.

    Args:
        file: holds how far it is from the real one.
        through: words that start a program under it.
    """

    file: Path
    through: tuple[str, ...]

    def set(self, seconds: int) -> None:
        """Set it so far ahead of the real one, or behind it."""
        # In one step: the server may read at any moment.
        new = self.file.with_name("new")
        new.write_text(f"{seconds:+d}\n")
        os.replace(new, self.file)  # noqa: PTH105 - returns nothing


@contextmanager
def a_clock(folder: Path) -> Iterator[Clock]:
    """Yield a clock that is right.

    Raises:
        MissingError: the library is not installed.
    """
    library = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)
    if library is None:
        raise MissingError("no libfaketime: apt-get install faketime")
    words = {
        "LD_PRELOAD": library,
        "FAKETIME_TIMESTAMP_FILE": folder / "clock",
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    clock = Clock(folder / "clock", ("env", *(f"{name}={value}" for name, value in words.items())))
    clock.set(0)
    yield clock
