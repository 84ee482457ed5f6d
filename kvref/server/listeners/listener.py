"""A listener: its address, its users, and their rights."""

from __future__ import annotations

import logging
import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kvref.addresses import Address
from kvref.engine.access import UNLIMITED, Access
from kvref.errors import ConfigError
from kvref.server.listeners.socket_activation import where
from kvref.server.listeners.sockets import DEFAULT, is_local, listen
from kvref.server.listeners.tls import Certificates
from kvref.server.listeners.unix_sockets import Permissions, SocketFile, file_of
from kvref.server.listeners.users import Users, read_users

_log = logging.getLogger("kvref.server")


class Loaded(NamedTuple):
    """Contents of the files of a listener: users and TLS context; None if there is no such file."""

    users: Users | None
    tls: ssl.SSLContext | None


@dataclass(eq=False)
class Listener:
    """One address of the server.

    Args:
        address: port 0 is any free one.
        access: rights of its connections.
        auth_file: file of users, see `users.py`; None: no authentication.
        certificates: certificates for TLS, None: no TLS.
        open: allow a non-loopback address without authentication.
        passed: a listening socket from the service manager; the address is the socket's.
        permissions: mode and owner of a unix socket that is not passed.

    Raises:
        ConfigError: a file is invalid, or the listener needs `open`.
    """

    address: Address
    access: Access = UNLIMITED
    auth_file: Path | None = None
    certificates: Certificates | None = None
    open: bool = False
    passed: socket.socket | None = None
    permissions: Permissions = DEFAULT
    _files: list[SocketFile] = field(default_factory=list, init=False)
    users: Users | None = field(default=None, init=False)
    tls: ssl.SSLContext | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.renew(self.load())
        if self._local:
            return
        asks = self.auth_file is not None or (self.certificates is not None and self.certificates.clients is not None)
        if not (asks or self.open):
            raise ConfigError(
                f"address {self}: reachable from other hosts without authentication: configure auth_file or"
                " tls_client_ca, listen on 127.0.0.1, or allow it with open (--open)"
            )
        if self.auth_file is not None and self.tls is None:
            _log.warning("address %s: passwords cross the network in clear text: configure tls_cert", self)

    def __str__(self) -> str:
        return str(self.address)

    def load(self) -> Loaded:
        """Read the current files; raises ConfigError if one is invalid."""
        return Loaded(
            None if self.auth_file is None else read_users(self.auth_file),
            None if self.certificates is None else self.certificates.context(),
        )

    def renew(self, loaded: Loaded) -> None:
        """Use what was read for new connections."""
        self.users, self.tls = loaded

    def listen(self) -> list[socket.socket]:
        """Return the sockets that are listened on; raises ConfigError where the address cannot be."""
        if self.passed is not None:
            return [self.passed]
        found = listen(self.address, self.permissions)
        if self.address.path:
            self._files.append(file_of(self.address.path))
        return found

    def remove_files(self) -> None:
        """Remove the files of unix sockets that were listened on here; a service manager keeps its own."""
        for each in self._files:
            each.remove()
        self._files.clear()

    def tell(self, place: socket.socket, workers: int = 1) -> None:
        """Log an address that is listened on, and what is to be said of it."""
        address, also = where(place), f" with {workers} workers" if workers > 1 else ""
        _log.info("listening on %s%s%s", address, also, self._limits, extra={"address": address})

    @property
    def _limits(self) -> str:
        said = [
            "TLS" if self.tls is not None else "",
            "client certificates" if self.certificates is not None and self.certificates.clients is not None else "",
            f"users of {self.auth_file}" if self.auth_file is not None else "",
            f"mappings {', '.join(self.access.mappings)}" if self.access.mappings else "",
            "read-only" if self.access.read_only else "",
            "" if self.access.flush else "no flush_all",
            {True: "metadump", False: "no metadump", None: ""}[self.access.list_keys],
        ]
        words = "; ".join(filter(None, said))
        return f" ({words})" if words else ""

    @property
    def _local(self) -> bool:
        return is_local(self.address)
