"""The requests that open a connection: authentication, and the choice of a mapping."""

from __future__ import annotations

from typing import Final, NamedTuple

from kvref.client.errors import CallError

_MAX_CREDENTIALS: Final = 2048  # bytes of both, as servers take them
AUTHENTICATE: Final = "authenticate"


class Greeting(NamedTuple):
    """The first words of a connection.

    Args:
        mapping: bound before all other requests; None: the server's default mapping.
        user, password: as memcached's file of users has them; no user: the server requires no authentication.
    """

    mapping: str | None = None
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Greeting(mapping={self.mapping!r}, user={self.user!r})"

    @property
    def authentication(self) -> bytes | None:
        """Return the authentication request, which is answered STORED; None: there is no user."""
        if not self.user:
            return None
        token = f"{self.user} {self.password}".encode("utf-8", "surrogateescape")
        return b"set auth 0 0 %d\r\n%s\r\n" % (len(token), token)

    @property
    def binding(self) -> bytes | None:
        """Return the request that binds the mapping, which is answered SUCCEED; None: there is none."""
        if self.mapping is None:
            return None
        return b"bind %s\r\n" % self.mapping.encode("utf-8", "surrogateescape")


def greeting(mapping: str | None, credentials: tuple[str, str] | None) -> Greeting:
    """Return the first words of connections.

    Args:
        mapping: see `Greeting`.
        credentials: user and password; None: the server requires no authentication.

    Raises:
        CallError: no server takes such credentials; the text does not tell the password.
    """
    if credentials is None:
        return Greeting(mapping)
    user, password = credentials
    whole = f"{user} {password}".encode("utf-8", "surrogateescape")
    if not (user and password) or " " in user or "\n" in user or len(whole) > _MAX_CREDENTIALS:
        raise CallError(
            f"credentials of {user!r}: a user without blanks and a password, {_MAX_CREDENTIALS} bytes at most"
        )
    return Greeting(mapping, user, password)
