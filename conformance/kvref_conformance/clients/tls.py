"""TLS of the scripted server, over a socket: handshakes whose bytes a fault changes, and records that it damages.

`MemoryTls` keeps the records in memory between OpenSSL and the socket, so that a fault can cut them. Python's `ssl`
cannot start another handshake; `LibraryTls` calls OpenSSL for it.

The certificates are valid from 2026 to 2126, `expired` to 2021; their private keys are public and protect nothing.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import select
import ssl
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from kvref.errors import KvrefError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

HERE: Final = Path(__file__).with_name("certificates")
AUTHORITY: Final = HERE / "authority.pem"
# Certificates for 127.0.0.1 and localhost; the client trusts the issuer of all but `unknown`.
CERTIFICATES: Final = ("server", "unknown", "elsewhere", "expired")
# What a fault does to the records of a reply.
GARBLED, UNENCRYPTED, HALF = "garbled", "plain", "half"
RENEGOTIATE, RENEGOTIATE_AND_CLOSE, KEY_UPDATE = "renegotiate", "renegotiate and close", "key update"
RECORDS: Final = ("", GARBLED, UNENCRYPTED, HALF, RENEGOTIATE, RENEGOTIATE_AND_CLOSE, KEY_UPDATE)
OF_LIBRARY: Final = frozenset({RENEGOTIATE, RENEGOTIATE_AND_CLOSE, KEY_UPDATE})

_CHUNK: Final = 1 << 16
_SET_MAX_VERSION: Final = 124  # SSL_CTRL_SET_MAX_PROTO_VERSION
_TLS_1_2: Final = 0x0303
_PEM: Final = 1  # SSL_FILETYPE_PEM
_UPDATE_REQUESTED: Final = 1  # SSL_KEY_UPDATE_REQUESTED


class Transport(Protocol):
    """A connection of the server."""

    def handshake(self, send: Callable[[bytes], bool]) -> bool:
        """Do what precedes the first command; return whether the connection remains. Raises OSError if it fails.

        Args:
            send: sends the bytes of one flight; returns whether the connection remains.
        """
        ...

    def recv(self) -> bytes:
        """Return received bytes, b"" at the end. Raises OSError if the connection is broken."""
        ...

    def sendall(self, data: bytes, records: str = "") -> bool:
        """Send bytes; return whether the connection remains. Raises OSError if it is broken.

        Args:
            data: plain text.
            records: one of RECORDS.
        """
        ...


class Unencrypted:
    """A connection without TLS."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def handshake(self, send: Callable[[bytes], bool]) -> bool:  # noqa: ARG002 - there is none
        """See `Transport`."""
        return True

    def recv(self) -> bytes:
        """See `Transport`."""
        return self._connection.recv(_CHUNK)

    def sendall(self, data: bytes, records: str = "") -> bool:  # noqa: ARG002 - there are none
        """See `Transport`."""
        self._connection.sendall(data)
        return True


class MemoryTls:
    """TLS whose records are kept in memory before they are sent.

    Args:
        connection: the connected socket.
        certificate: one of CERTIFICATES.
        requires_certificate: the client must have one.
    """

    def __init__(self, connection: socket.socket, certificate: str, *, requires_certificate: bool) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(HERE / f"{certificate}.pem")
        if requires_certificate:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(AUTHORITY)
        self._connection = connection
        self._received, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(self._received, self._out, server_side=True)

    def handshake(self, send: Callable[[bytes], bool]) -> bool:
        """See `Transport`."""
        while True:
            try:
                self._session.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                done = False
            except ssl.SSLError:
                self._flush()  # the alert
                raise
            flight = self._out.read()
            if flight and not send(flight):
                return False
            if done:
                return True
            self._feed()

    def recv(self) -> bytes:
        """See `Transport`."""
        while True:
            try:
                return self._session.read(_CHUNK)
            except ssl.SSLWantReadError:
                self._flush()
                self._feed()
            except ssl.SSLZeroReturnError:
                return b""

    def sendall(self, data: bytes, records: str = "") -> bool:
        """See `Transport`."""
        if records == UNENCRYPTED:
            self._connection.sendall(data)
            return True
        self._session.write(data)
        sealed = self._out.read()
        if records == GARBLED:
            sealed = sealed[:-1] + bytes([sealed[-1] ^ 1])
        elif records == HALF:
            sealed = sealed[: len(sealed) // 2]
        self._connection.sendall(sealed)
        return records != HALF

    def _flush(self) -> None:
        if self._out.pending:
            self._connection.sendall(self._out.read())

    def _feed(self) -> None:
        data = self._connection.recv(_CHUNK)
        if not data:
            raise ConnectionError("the client ended the connection within TLS")
        self._received.write(data)


class LibraryTls:
    """TLS by OpenSSL's own functions, which can start another handshake: TLS 1.2, for a key update TLS 1.3.

    Args:
        connection: the connected socket, blocking.
        certificate: one of CERTIFICATES.
        records: of OF_LIBRARY.
        patience: how long the answer of the client to a request to renegotiate is awaited, in seconds.
    """

    def __init__(self, connection: socket.socket, certificate: str, records: str, patience: float) -> None:
        self._connection, self._patience = connection, patience
        library = openssl()
        self._library = library
        self._context = library.SSL_CTX_new(library.TLS_server_method())
        file = str(HERE / f"{certificate}.pem").encode()
        if records != KEY_UPDATE:
            library.SSL_CTX_ctrl(self._context, _SET_MAX_VERSION, _TLS_1_2, None)
        if not library.SSL_CTX_use_certificate_file(self._context, file, _PEM):
            raise OSError(f"{certificate}: no certificate")
        library.SSL_CTX_use_PrivateKey_file(self._context, file, _PEM)
        self._session = library.SSL_new(self._context)
        library.SSL_set_fd(self._session, connection.fileno())

    def handshake(self, send: Callable[[bytes], bool]) -> bool:  # noqa: ARG002 - OpenSSL sends by itself
        """See `Transport`."""
        if self._library.SSL_accept(self._session) != 1:
            raise OSError("the handshake failed")
        return True

    def recv(self) -> bytes:
        """See `Transport`."""
        buffer = ctypes.create_string_buffer(_CHUNK)
        size = self._library.SSL_read(self._session, buffer, _CHUNK)
        return buffer.raw[: max(0, size)]

    def sendall(self, data: bytes, records: str = "") -> bool:
        """See `Transport`."""
        if records in OF_LIBRARY:
            if records == KEY_UPDATE:
                self._library.SSL_key_update(self._session, _UPDATE_REQUESTED)
            else:
                self._library.SSL_renegotiate(self._session)
            if self._library.SSL_do_handshake(self._session) != 1:
                raise OSError("the request for another handshake is not sent")
            if records == RENEGOTIATE_AND_CLOSE:
                select.select([self._connection], [], [], self._patience)
                return False
        if self._library.SSL_write(self._session, data, len(data)) != len(data):
            raise OSError("the client ended the connection")
        return True

    def __del__(self) -> None:
        """Free what OpenSSL has allocated."""
        if session := getattr(self, "_session", None):
            self._library.SSL_free(session)
        if context := getattr(self, "_context", None):
            self._library.SSL_CTX_free(context)


@cache
def openssl() -> Any:
    """Return OpenSSL's library with typed functions. Raises KvrefError if the machine has none."""
    name = ctypes.util.find_library("ssl")
    if name is None:
        raise KvrefError("no library libssl, which requests another handshake: apt-get install libssl3")
    library = ctypes.CDLL(name)
    pointer, integer, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    for function, result, *arguments in (
        ("TLS_server_method", pointer),
        ("SSL_CTX_new", pointer, pointer),
        ("SSL_CTX_free", None, pointer),
        ("SSL_CTX_ctrl", ctypes.c_long, pointer, integer, ctypes.c_long, pointer),
        ("SSL_CTX_use_certificate_file", integer, pointer, text, integer),
        ("SSL_CTX_use_PrivateKey_file", integer, pointer, text, integer),
        ("SSL_new", pointer, pointer),
        ("SSL_free", None, pointer),
        ("SSL_set_fd", integer, pointer, integer),
        ("SSL_accept", integer, pointer),
        ("SSL_read", integer, pointer, pointer, integer),
        ("SSL_write", integer, pointer, pointer, integer),
        ("SSL_renegotiate", integer, pointer),
        ("SSL_key_update", integer, pointer, integer),
        ("SSL_do_handshake", integer, pointer),
    ):
        call = getattr(library, function)
        call.restype, call.argtypes = result, arguments
    return library
