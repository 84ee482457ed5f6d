"""Errors of the Python clients: each class names the cause; all inherit from pymemcache's exceptions.

MappedError                  every error below
├── CallError                the caller's: a key, value or argument that is invalid, or that the server rejected
├── UnknownMappingError      the configuration's: the server serves no mapping of that name
├── UnsupportedError         the server does not have this feature
├── ServerError              the server's: it could not
│   └── InvalidReplyError    its answer cannot be read
└── LinkError                the connection's: no server there, it went away, or it was silent for too long

Each also inherits from the exception that pymemcache raises in the same case, so that an `except` clause written for
pymemcache works. A normal reply (a miss, NOT_STORED, EXISTS) is a result, not an error.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from kvref.errors import KvrefError


class MemcacheError(Exception): ...


class MemcacheClientError(MemcacheError): ...


class MemcacheIllegalInputError(MemcacheClientError): ...


class MemcacheUnknownCommandError(MemcacheClientError): ...


class MemcacheServerError(MemcacheError): ...


class MemcacheUnexpectedCloseError(MemcacheServerError): ...


class MemcacheUnknownError(MemcacheError): ...


if not TYPE_CHECKING:  # pymemcache has no types
    with suppress(ModuleNotFoundError):
        from pymemcache.exceptions import (
            MemcacheClientError,
            MemcacheError,
            MemcacheIllegalInputError,
            MemcacheServerError,
            MemcacheUnexpectedCloseError,
            MemcacheUnknownCommandError,
            MemcacheUnknownError,
        )


class MappedError(KvrefError, MemcacheError):
    """A call of a client failed."""


class CallError(MappedError, MemcacheIllegalInputError, ValueError):
    """The call cannot be carried out by any server, or the server answered CLIENT_ERROR."""


class UnknownMappingError(MappedError, MemcacheClientError, LookupError):
    """The server has no row of that name in `containers`, or could not use it when it started."""


class UnsupportedError(MappedError, MemcacheUnknownCommandError):
    """The server answered, and has no such feature."""


class ServerError(MappedError, MemcacheServerError):
    """The server replied SERVER_ERROR, or with an invalid reply."""


class InvalidReplyError(ServerError, MemcacheUnknownError):
    """The server's reply is invalid, or exceeds the client's limit."""


class LinkError(MappedError, MemcacheUnexpectedCloseError, ConnectionError):
    """The connection could not be opened, or ended or stayed silent with an answer outstanding.

    A write that was on its way may have been carried out or not: read before sending `incr` or `append` again.
    """


def reply_error(line: bytes, verb: str, server: str) -> MappedError | None:
    """Return the error of a reply line, None for any other line.

    Args:
        line: a reply without its line end.
        verb: the verb of the request.
        server: HOST:PORT or unix:PATH.
    """
    text = line.decode("utf-8", "backslashreplace")
    if text == "ERROR":
        return UnsupportedError(f"{server} does not support {verb!r}")
    if text.startswith("CLIENT_ERROR"):
        return CallError(f"{verb}: {server} rejected it: {text[13:]}")
    if text.startswith("SERVER_ERROR"):
        return ServerError(f"{verb}: {server} failed: {text[13:]}")
    return None


def invalid_reply(line: bytes, verb: str) -> InvalidReplyError:
    """Return the error for a line that is not a reply to the request."""
    return InvalidReplyError(f"{verb}: {line[:60]!r} is not a valid reply")
