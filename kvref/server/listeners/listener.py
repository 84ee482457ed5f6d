"""A listener: its address, its users and their rights, also from the tables `[[listener]]` of a configuration file."""

from __future__ import annotations

import logging
import os
import socket
import ssl
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from kvref.addresses import FORM, UNIX, Address, parse_address
from kvref.engine.access import UNLIMITED, Access
from kvref.engine.cache.memory import Policy
from kvref.engine.mapping import Directory
from kvref.errors import ConfigError, Part, choices, suggestion
from kvref.server.listeners.authentication import Users, read_users
from kvref.server.listeners.sockets import (
    DEFAULT,
    Permissions,
    is_local,
    listen,
    permissions,
    where,
)
from kvref.storage.base import READS, MappedTables


@dataclass(frozen=True, slots=True)
class Certificates:
    """Certificate files in PEM format.

    Args:
        chain: the server's certificate and the intermediate certificates.
        key: its private key without a passphrase; None: it is in `chain`.
        clients: authorities for client certificates, which are then required; None: no client certificates.
    """

    chain: Path
    key: Path | None = None
    clients: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return a context for TLS 1.2 and later; raises ConfigError if a file is invalid."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.chain, self.key, _no_passphrase)
        except OSError as error:
            key = "" if self.key is None else f", tls_key={self.key}"
            raise ConfigError(f"tls_cert={self.chain}{key}: {_why(error)}: name PEM files that match") from error
        if self.clients is not None:
            try:
                context.load_verify_locations(self.clients)
            except OSError as error:
                raise ConfigError(f"tls_client_ca={self.clients}: {_why(error)}: name a PEM file") from error
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _no_passphrase() -> str:
    raise ConfigError("tls_key: the key is encrypted with a passphrase: name a key without one")


def _why(error: OSError) -> str:
    if not isinstance(error, ssl.SSLError):
        return str(error.strerror)
    return error.reason.replace("_", " ").lower() if error.reason else "it has no such PEM block"


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
        auth_file: file of users, see `authentication.py`; None: no authentication.
        certificates: certificates for TLS, None: no TLS.
        open: allow a non-loopback address without authentication.
        passed: a listening socket from the service manager; the address is the socket's.
        permissions: mode and owner of a unix socket that is not passed.
        reads: which servers answer plain gets, see `MappedTables.reads`; empty: as each store says.

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
    reads: str = ""
    _files: list[tuple[Path, os.stat_result]] = field(default_factory=list, init=False)
    users: Users | None = field(default=None, init=False)
    tls: ssl.SSLContext | None = field(default=None, init=False)
    port: int = field(default=0, init=False)  # that is listened on, in processes forked later too; 0: none

    def __post_init__(self) -> None:
        self.renew(self.load())
        if is_local(self.address):
            return
        authenticates = self.auth_file is not None or (
            self.certificates is not None and self.certificates.clients is not None
        )
        if not (authenticates or self.open):
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
        found = [self.passed] if self.passed is not None else listen(self.address, self.permissions)
        if not self.address.path:
            self.port = found[0].getsockname()[1]
        elif self.passed is None:
            path = Path(self.address.path).absolute()  # the working directory may change
            self._files.append((path, path.lstat()))
        return found

    def remove_files(self) -> None:
        """Remove the files of unix sockets that were listened on here, unless another server has replaced them."""
        for path, found in self._files:
            with suppress(FileNotFoundError):
                if os.path.samestat(path.lstat(), found):
                    path.unlink()
        self._files.clear()

    def log(self, listening: socket.socket, workers: int = 1) -> None:
        """Log an address that is listened on, and the features of the listener."""
        address, also = where(listening), f" with {workers} workers" if workers > 1 else ""
        _log.info("listening on %s%s%s", address, also, self._limits, extra={"address": address})

    @property
    def _limits(self) -> str:
        features = [
            "TLS" if self.tls is not None else "",
            "client certificates" if self.certificates is not None and self.certificates.clients is not None else "",
            f"users of {self.auth_file}" if self.auth_file is not None else "",
            f"mappings {', '.join(self.access.mappings)}" if self.access.mappings else "",
            "read-only" if self.access.read_only else "",
            "" if self.access.flush else "no flush_all",
            {True: "metadump", False: "no metadump", None: ""}[self.access.list_keys],
            self.reads and f"reads={self.reads}",
        ]
        words = "; ".join(filter(None, features))
        return f" ({words})" if words else ""


# What each name takes, as TOML calls it.
NAMES: Final[dict[str, tuple[type, str]]] = {
    "address": (str, FORM),
    "socket_mode": (str, 'octal digits, "0660"'),
    "socket_owner": (str, '"USER", "USER:GROUP" or ":GROUP"'),
    "auth_file": (str, "the path of a file of user:password lines"),
    "tls_cert": (str, "the path of a PEM file"),
    "tls_key": (str, "the path of a PEM file"),
    "tls_client_ca": (str, "the path of a PEM file"),
    "mappings": (list, 'names of containers, ["a", "b"]'),
    "read_only": (bool, "true or false"),
    "flush_all": (bool, "true or false"),
    "metadump": (bool, "true or false"),
    "open": (bool, "true or false"),
    "reads": (str, f"one of {', '.join(READS)}"),
}
_SHOWN: Final = 10  # names in a message


def fitting(table: Mapping[str, Any], part: Part = nullcontext) -> dict[str, Any]:
    """Return the values of a listener's table by name, each checked in a context of `part`.

    Raises:
        ConfigError: an unknown name, or a value of another kind, see NAMES.
    """
    found = {}
    for name, value in table.items():
        with part():
            if name not in NAMES:
                raise ConfigError(f"listener: unknown key {name!r}{choices(name, NAMES)}")
            kind, form = NAMES[name]
            if not (isinstance(value, kind) and _is_one(name, value)):
                raise ConfigError(f"listener: {name} = {value!r}: write {form}")
            if name == "address":
                parse_address(str(value))
            found[name] = value
    return found


def _is_one(name: str, value: Any) -> bool:
    """Return whether a value of the right kind is one that the name takes."""
    if name == "mappings":
        return bool(value) and all(isinstance(each, str) and each for each in value)
    return name != "reads" or value in READS


def listener(table: Mapping[str, Any], passed: socket.socket | None = None) -> Listener:
    """Return the listener that a table names; `passed` is its socket if it is listened on already.

    Raises:
        ConfigError: no address, an unknown name, a value of another kind, or as `Listener`.
    """
    fitting(table)
    if "address" not in table and passed is None:
        raise ConfigError('listener without an address: write address = "HOST:PORT" or "unix:PATH"')
    address = parse_address(table["address"]) if passed is None else _address(passed)
    access = Access(
        tuple(table.get("mappings", ())),
        read_only=table.get("read_only", False),
        flush=table.get("flush_all", True),
        list_keys=table.get("metadump"),
    )
    return Listener(
        address,
        UNLIMITED if access == UNLIMITED else access,  # this object itself: no command is checked
        _path(table, "auth_file"),
        _certificates(table),
        open=table.get("open", False),
        passed=passed,
        permissions=_permissions(table, address, passed),
        reads=table.get("reads", ""),
    )


def _permissions(table: Mapping[str, Any], address: Address, passed: socket.socket | None) -> Permissions:
    mode, owner = table.get("socket_mode"), table.get("socket_owner")
    if mode is None and owner is None:
        return Permissions()
    if passed is not None:
        raise ConfigError("socket_mode or socket_owner: systemd passed the socket: set SocketMode= in its unit")
    if not address.path:
        raise ConfigError(f"socket_mode or socket_owner with address {address}: they apply only to unix:PATH")
    return permissions(mode, owner)


def _address(passed: socket.socket) -> Address:
    if passed.family == socket.AF_UNIX:
        return Address("", 0, where(passed).removeprefix(UNIX))
    return Address(*passed.getsockname()[:2])


def _certificates(table: Mapping[str, Any]) -> Certificates | None:
    chain, key, clients = (_path(table, name) for name in ("tls_cert", "tls_key", "tls_client_ca"))
    if chain is not None:
        return Certificates(chain, key, clients)
    if key is not None or clients is not None:
        raise ConfigError("listener: tls_key or tls_client_ca without tls_cert: name the server certificate")
    return None


def _path(table: Mapping[str, Any], name: str) -> Path | None:
    path = table.get(name)
    if path is not None and "\0" in path:
        raise ConfigError(f"listener: {name} = {path!r}: a path cannot contain NUL")
    return None if path is None else Path(path)


def unknown_mappings(listeners: list[Listener], directory: Directory) -> list[str]:
    """Return a sentence for each mapping of a listener that no usable row of `containers` has.

    A row that is added later is found when a client names it.
    """
    usable = directory.usable or (directory.default,)
    known = {directory.naming.fold(each.name) for each in usable}
    return [
        (
            f"listener {each}: no usable row of containers has the name {name!r}, which mappings lists"
            f"{suggestion(name, [mapping.name for mapping in usable])}: choose from"
            f" {', '.join(mapping.name for mapping in usable[:_SHOWN])}{', …' if len(usable) > _SHOWN else ''}"
        )
        for each in listeners
        for name in each.access.mappings
        if directory.naming.fold(name) not in known
    ]


def missing_privileges(listeners: list[Listener], store: MappedTables, directory: Directory) -> list[str]:
    """Return a sentence for each mapping that clients may write, and the store's account may not.

    It blocks on a new connection to the store. Raises StoreError if the store is not reached.
    """
    if all(each.access.read_only for each in listeners):
        return []
    return store.missing_privileges(directory.usable or (directory.default,))


def refuse_shared_cache(listeners: list[Listener], directory: Directory) -> None:
    """Raise ConfigError for a listener of some mappings if a memory cache holds items of all."""
    cached = directory.policies.in_memory
    limited = next((each for each in listeners if each.access.mappings), None)
    if cached is not None and limited is not None:
        kind, policy = cached
        raise ConfigError(
            f"listener {limited} is limited to mappings, but cache_policies sets {kind} to {policy.value!r}:"
            f" all mappings share the memory cache: set it to {Policy.TABLE.value!r}, or remove mappings"
        )


def refuse_reads(listeners: list[Listener], tables: MappedTables) -> None:
    """Raise ConfigError for a listener with a value of `reads` that no store can have."""
    for each in listeners:
        if each.reads and each.reads not in tables.reads:
            raise ConfigError(
                f"listener {each}: reads = {each.reads!r}: no store has it: set reads={each.reads} in a DSN mysql://,"
                " or leave it out here"
            )
