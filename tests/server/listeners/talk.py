"""Exchanges with a server that requires authentication, and certificates for one with TLS."""

from __future__ import annotations

import re
import socket
import ssl
import struct
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

SILENCE = 0.1  # seconds without an answer after which the next bytes are sent
LAST_SILENCE = 0.4
ENDED = b"<the end>"
HEADER = 24  # bytes of a binary response
NOOP = struct.pack(">BBHBBHI4sQ", 0x80, 0x0A, 0, 0, 0, 0, 0, b"last", 0)
NOOP_ANSWER = b"\x81" + NOOP[1:]
VERSION = re.compile(rb"VERSION [^\r\n]*\r\n\Z")


def held(port: int, chunks: Sequence[bytes], tls: ssl.SSLContext | None = None) -> list[bytes]:
    """Send chunks one after the other, and return what came after each; ENDED where the connection was closed.

    On a slow machine an answer may be found behind a later chunk: joined, they are what was said.
    """
    received = []
    with ExitStack() as stack:
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
        if tls is not None:
            client = stack.enter_context(tls.wrap_socket(client, server_hostname="localhost"))
        for left, chunk in reversed(list(enumerate(reversed(chunks)))):
            client.settimeout(SILENCE if left else LAST_SILENCE)
            client.sendall(chunk)
            received.append(_said(client))
            if received[-1].endswith(ENDED):
                break
    return received


def answers(port: int, requests: Sequence[bytes], tls: ssl.SSLContext | None = None) -> list[bytes]:
    """Send requests, each after the answer to the one before, and return the answers; ENDED as in `held`.

    Nothing waits for silence: `version` or a noop goes behind the last request, and what comes before its answer is the
    last answer. Every request must be answered, and the last must leave the client authenticated.
    """
    with ExitStack() as stack:
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
        if tls is not None:
            client = stack.enter_context(tls.wrap_socket(client, server_hostname="localhost"))
        binary = requests[0][0] == 0x80
        found = []
        for each in requests[:-1]:
            client.sendall(each)
            found.append(_up_to(client, _is_frame if binary else _is_text))
            if found[-1].endswith(ENDED):
                return found
        client.sendall(requests[-1] + (NOOP if binary else b"version\r\n"))
        last = _up_to(client, _has_noop if binary else VERSION.search)
        return [*found, last.removesuffix(NOOP_ANSWER) if binary else VERSION.sub(b"", last)]


def _up_to(client: socket.socket, whole: Callable[[bytes], object]) -> bytes:
    reply = b""
    while not whole(reply):
        try:
            chunk = client.recv(1 << 16)
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            return reply + ENDED
        reply += chunk
    return reply


def _is_text(reply: bytes) -> bool:
    """Return whether there is an answer of the text protocol, its last line included."""
    return reply.endswith(b"END\r\n" if reply.startswith((b"VALUE", b"STAT")) else b"\r\n")


def _is_frame(reply: bytes) -> bool:
    return len(reply) >= HEADER and len(reply) >= HEADER + int.from_bytes(reply[8:12], "big")


def _has_noop(reply: bytes) -> bool:
    return reply.endswith(NOOP_ANSWER)


def _said(client: socket.socket) -> bytes:
    reply = bytearray()
    with suppress(TimeoutError):
        while not reply.endswith(ENDED):
            try:
                reply += client.recv(1 << 16) or ENDED
            except ConnectionResetError:
                reply += ENDED
    return bytes(reply)


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
