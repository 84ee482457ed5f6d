"""What SQLite's errors are to whoever asks the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from kvref.errors import KvrefError, StoreError


class BusyError(KvrefError):
    """Another process is writing to the file: try the operation again."""


class StatementError(StoreError):
    """A table is gone, or is no longer what the statement was made for."""


class Translating(Protocol):
    """A store that knows what an error of its connection means."""

    def translated(self, error: sqlite3.Error) -> KvrefError:
        """Return what an error of SQLite means to a command."""


_S = TypeVar("_S", bound=Translating)
_T = TypeVar("_T")
_P = ParamSpec("_P")


def translating(method: Callable[Concatenate[_S, _P], _T]) -> Callable[Concatenate[_S, _P], _T]:
    """Raise errors of SQLite as errors of the store."""

    @wraps(method)
    def translated(self: _S, /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        try:
            return method(self, *arguments, **named)
        except sqlite3.Error as error:
            raise self.translated(error) from error
        except OverflowError as error:
            raise StoreError(f"SQLite cannot hold this number: {error}") from error
        except (UnicodeEncodeError, UnicodeDecodeError) as error:
            raise StoreError(f"the row holds text that is no UTF-8: {error.reason}") from error

    return translated
