"""The clients that `kvref conform-client` judges by name: those of `kvref interop` with an adapter, and kvref's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kvref_conformance.interop.rows import Client, clients

# Their scripts need kvref alone.
OWN: Final = {
    "kvref": Client("kvref", "kvref MappedClient", "python", "use_kvref.py", "text"),
    "kvref-async": Client("kvref-async", "kvref AsyncMappedClient", "python", "use_kvref_async.py", "text"),
}
_ADAPTERS: Final = {"tools": "calls.py"}  # of kits whose script of features is not an adapter


def judged_clients() -> dict[str, Client]:
    """Return the clients by ID."""
    others = {
        name: replace(row, script=_ADAPTERS.get(row.kit, row.script))
        for name, row in clients().items()
        if not row.through
    }
    return OWN | others
