"""The exceptions of pymemcache, from which those of the clients inherit; without it, classes of the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = [
    "MemcacheClientError",
    "MemcacheError",
    "MemcacheIllegalInputError",
    "MemcacheServerError",
    "MemcacheUnexpectedCloseError",
    "MemcacheUnknownCommandError",
    "MemcacheUnknownError",
]

_installed = False
if not TYPE_CHECKING:  # pymemcache has no types
    try:
        from pymemcache.exceptions import (
            MemcacheClientError,
            MemcacheError,
            MemcacheIllegalInputError,
            MemcacheServerError,
            MemcacheUnexpectedCloseError,
            MemcacheUnknownCommandError,
            MemcacheUnknownError,
        )

        _installed = True
    except ModuleNotFoundError:
        pass

if not _installed:

    class MemcacheError(Exception):
        """Any error of a client of memcached."""

    class MemcacheClientError(MemcacheError):
        """The call is invalid."""

    class MemcacheIllegalInputError(MemcacheClientError):
        """The key, the value or an argument is invalid."""

    class MemcacheUnknownCommandError(MemcacheClientError):
        """The server does not have the command."""

    class MemcacheServerError(MemcacheError):
        """The server failed."""

    class MemcacheUnexpectedCloseError(MemcacheServerError):
        """The connection ended before the reply."""

    class MemcacheUnknownError(MemcacheError):
        """The reply is invalid."""
