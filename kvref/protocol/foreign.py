"""Requests of other protocols that reach a memcached port: browsers, scanners and clients with the wrong address.

If the lines behind such a request were executed, a web page could write rows through its visitor's loopback interface.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

HTTP: Final = "HTTP"
TLS: Final = "TLS"
_HTTP_VERSION: Final = b"HTTP/"
# The first bytes of a connection. A TLS record of type handshake (RFC 8446, 5.1); an identification string (RFC 4253,
# 4.2); an array of RESP, in which Redis clients send commands; both versions of HAProxy's PROXY protocol.
_OPENINGS: Final = {
    TLS: re.compile(rb"\x16\x03"),
    "SSH": re.compile(rb"SSH-"),
    "RESP": re.compile(rb"\*[0-9]+\r?\n"),
    "PROXY": re.compile(rb"PROXY |\r\n\r\n\0\r\nQUIT\n"),
}


def is_http(words: Sequence[bytes]) -> bool:
    """Return whether the last word makes a line an HTTP request (process_command_ascii, proto_text.c)."""
    return bool(words) and words[-1].startswith(_HTTP_VERSION)


def opening(data: bytes | bytearray) -> str:
    """Return the protocol that the first bytes of a connection open, or an empty string."""
    return next((name for name, pattern in _OPENINGS.items() if pattern.match(data)), "")


def farewell(protocol: str) -> bytes:
    """Return what is sent before the connection is closed: to a TLS client the line that memcached 1.6 answers.

    A TLS library reports such a line as `wrong version number`, and a connection without a reply as a network fault.
    """
    return b"ERROR\r\n" if protocol == TLS else b""
