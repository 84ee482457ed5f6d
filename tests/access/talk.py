"""Conversations with a server that asks who one is, and certificates for one that speaks TLS."""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

SILENCE = 0.1  # seconds without an answer after which the next bytes are sent
LAST_SILENCE = 0.4
ENDED = b"<the end>"


def held(port: int, chunks: Sequence[bytes], tls: ssl.SSLContext | None = None) -> list[bytes]:
    """Send chunks one after the other, and return what came after each; ENDED where the connection was closed.

    On a slow machine an answer may be found behind a later chunk: joined, they are what was said.
    """
    heard = []
    with ExitStack() as stack:
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
        if tls is not None:
            client = stack.enter_context(tls.wrap_socket(client, server_hostname="localhost"))
        for left, chunk in reversed(list(enumerate(reversed(chunks)))):
            client.settimeout(SILENCE if left else LAST_SILENCE)
            client.sendall(chunk)
            heard.append(_said(client))
            if heard[-1].endswith(ENDED):
                break
    return heard


def _said(client: socket.socket) -> bytes:
    said = bytearray()
    with suppress(TimeoutError):
        while not said.endswith(ENDED):
            try:
                said += client.recv(1 << 16) or ENDED
            except ConnectionResetError:
                said += ENDED
    return bytes(said)


def frame(opcode: int, key: bytes = b"", value: bytes = b"", extras: bytes = b"") -> bytes:
    """Return a binary request with the opaque 1."""
    length = len(extras) + len(key) + len(value)
    head = struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), len(extras), 0, 0, length, 1, 0)
    return head + extras + key + value


def authority(folder: Path, name: str = "localhost") -> tuple[Path, Path]:
    """Make a certificate that vouches for itself, and its key; returns their files."""
    cert, key = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-keyout", str(key), "-out", str(cert),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return cert, key


def trusting(cert: Path, own: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    """Return how a client connects that trusts a certificate, and shows one of its own."""
    context = ssl.create_default_context(cafile=cert)
    if own is not None:
        context.load_cert_chain(*own)
    return context
