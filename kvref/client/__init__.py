"""The client's side: mapped tables from Python.

    from kvref.client import MappedClient

    with MappedClient("127.0.0.1:11211", mapping="aaa") as client:
        client.at("shop", columns=("name", "price")).get("1")          # {"name": "pen", "price": "120"}

Reading path: `errors.py` (whose fault it is), `arguments.py` and `columns.py` (what may be sent),
`view.py` (what both share), then `mapped.py` and `bound.py` (on pymemcache, extra `client`), and `aio` (asyncio, which
needs no extra). Names are loaded when they are first used, so that `aio` works without pymemcache.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvref.client.aio import AsyncMappedClient
    from kvref.client.aio.view import AsyncMappedView
    from kvref.client.columns import Columns
    from kvref.client.errors import (
        CallError,
        InvalidReplyError,
        LinkError,
        MappedError,
        ServerError,
        UnknownMappingError,
        UnsupportedError,
    )
    from kvref.client.mapped import MappedClient, MappedView

__all__ = [
    "AsyncMappedClient",
    "AsyncMappedView",
    "CallError",
    "Columns",
    "InvalidReplyError",
    "LinkError",
    "MappedClient",
    "MappedError",
    "MappedView",
    "ServerError",
    "UnknownMappingError",
    "UnsupportedError",
]

_MODULES = {"Async": "aio", "Mapped": "mapped", "Columns": "columns"}


def __getattr__(name: str) -> object:
    """Load a public name. Raises ImportError naming the extra where pymemcache is missing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "errors"
    if not name.endswith("Error"):
        module = next(module for start, module in _MODULES.items() if name.startswith(start))
    return getattr(import_module(f"{__name__}.{module}"), name)
