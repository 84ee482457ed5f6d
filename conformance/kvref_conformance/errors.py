"""Errors of a run: the endpoint's fault is `CaseFailed`; all others occur outside of a verdict."""

from __future__ import annotations


class CannotJudge(Exception):  # noqa: N818 - named for the exit code it causes
    """The run cannot start: endpoint, DSN, profile or option unusable. The text names the value and the fix."""


class NotRun(Exception):  # noqa: N818 - a verdict, not a fault
    """A case cannot be tried in this run; the text is the reason, with the option that would change it."""


class CaseFailed(AssertionError):  # noqa: N818 - a verdict, not a fault of the suite
    """The endpoint answered something that is not allowed; the text suffices alone."""
