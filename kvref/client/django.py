"""A cache backend of Django on `MappedClient`.

    CACHES = {
        "default": {
            "BACKEND": "kvref.client.django.KvrefCache",
            "LOCATION": "127.0.0.1:11211",
            "OPTIONS": {"mapping": "cache"},
        }
    }

It is Django's own backend for pymemcache with another client: each error names its cause, a key of several servers
never moves to another server, and an option can name the mapping.
"""

from __future__ import annotations

from typing import Any, Final

from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.memcached import PyMemcacheCache

from kvref.client.mapped import MappedClient

# memcached and kvref read more than 30 days as a Unix time: this one is in 1970. The plugins reject negative times.
_PAST: Final = 30 * 24 * 3600 + 1


class KvrefCache(PyMemcacheCache):  # type: ignore[misc]
    """Django's cache in a table that kvref serves.

    Args:
        server: LOCATION: an address, several with `;` or `,` between them, or a list; see `MappedClient`.
        params: of the cache; OPTIONS are those of `MappedClient`, such as mapping, credentials and tls_context. Values
            are pickled, unless OPTIONS has a `serde`.

    Raises:
        CallError: by the first use: an option is unknown or invalid.
    """

    def __init__(self, server: str | list[str], params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = MappedClient

    @property
    def client_servers(self) -> list[str]:
        """Return the servers as `MappedClient` takes them."""
        return [each.strip() if isinstance(each, str) else each for each in self._servers]

    def get_backend_timeout(self, timeout: Any = DEFAULT_TIMEOUT) -> int:
        """Return the expiry time of a timeout in seconds: 0 for None, a time in the past for 0 and below."""
        seconds: int = super().get_backend_timeout(timeout)
        return _PAST if seconds < 0 else seconds
