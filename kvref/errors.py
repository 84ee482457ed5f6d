"""Errors that kvref raises on purpose, and parts of error texts; any other exception that escapes is a bug in kvref.

KvrefError                 every error below: its text names the value and the fix
├── ConfigError            a setting, a profile or a containers row that cannot be used
│   └── RowError           a containers row, with the rule that it breaks
├── StoreError             the database refused or failed; the text is the database's cause
└── TargetError            a real endpoint could not be fetched, started, reached or stopped

SuiteError                 the specification or the suite itself is wrong: a fault of the project, not of its use
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from difflib import get_close_matches
from typing import Final, TypeAlias

_CLOSE: Final = 0.65  # ratio of difflib, of two names that a typing error may tell apart
# The context of one part of a check that has several: `nullcontext` raises the first error, `Collected.part` all.
Part: TypeAlias = Callable[[], AbstractContextManager[None]]


class KvrefError(Exception):
    """Base of every error that names a value and a fix."""


class ConfigError(KvrefError):
    """A setting, a profile or a configuration row cannot be used."""


class RowError(ConfigError):
    """A containers row cannot be used; `rule` is a short name of what it breaks, such as `no-table`."""

    def __init__(self, text: str, rule: str) -> None:
        super().__init__(text)
        self.rule = rule


class StoreError(KvrefError):
    """The database refused or failed."""


class TargetError(KvrefError):
    """A real endpoint could not be fetched, started, reached or stopped."""


class Collected:
    """The errors of a check that continues after one, in the order in which they were found."""

    def __init__(self) -> None:
        self.errors: list[KvrefError] = []

    @contextmanager
    def part(self) -> Iterator[None]:
        """Collect the error that ends a part of the check."""
        try:
            yield
        except KvrefError as error:
            self.errors.append(error)


class SuiteError(Exception):
    """The suite itself is wrong: a malformed requirement, deviation row or case."""


def printable(text: str, *, keep: str = "") -> str:
    r"""Return text of an endpoint, a client or a file with all characters printable: others, such as ESC, become \xNN.

    Args:
        keep: characters that are not escaped, for example a line end if the text has several lines.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each in keep or each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean NAME` for the known name that is closest to an unknown one; empty if none is close."""
    spelled = {each.casefold(): each for each in known}
    if spelled.get(name.casefold()) == name:
        return ""
    close = get_close_matches(name.casefold(), list(spelled), 1, _CLOSE)
    return f", did you mean {spelled[close[0]]!r}" if close else ""


def choices(name: str, known: Iterable[str]) -> str:
    """Return the end of an error about an unknown name: `suggestion`, then all known names."""
    names = list(known)
    return f"{suggestion(name, names)}: choose one of {', '.join(names)}"


def cause_of(error: BaseException) -> str:
    """Return the cause of an error without number and file name, which the text around it has: `Is a directory`."""
    return getattr(error, "strerror", None) or str(error)


def install(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'kvref[{extra}]'"
