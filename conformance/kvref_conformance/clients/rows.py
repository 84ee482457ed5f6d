"""The clients that `kvref conform-client` judges by name: those of `kvref interop` with an adapter, and kvref's own."""

from __future__ import annotations

from typing import Final

from kvref_conformance.interop.rows import Client, clients

# Their scripts need kvref alone.
OWN: Final = {
    "kvref": Client("kvref", "kvref MappedClient", "python", "use_kvref.py", "text"),
    "kvref-async": Client("kvref-async", "kvref AsyncMappedClient", "python", "use_kvref_async.py", "text"),
}
# The command line tools open a connection for each command: nothing of one call can reach another one.
_WITHOUT_ADAPTER: Final = frozenset({"tools"})


def judged_clients() -> dict[str, Client]:
    """Return the clients by ID."""
    others = {name: row for name, row in clients().items() if not row.through and row.kit not in _WITHOUT_ADAPTER}
    return OWN | others
