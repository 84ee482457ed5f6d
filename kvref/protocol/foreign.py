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
    """Return whether a line that begins with no known verb is an HTTP request line.

    Args:
        words: the words of the line. As in memcached 1.6 (process_command_ascii, proto_text.c), the last one decides.
    """
    return bool(words) and words[-1].startswith(_HTTP_VERSION)


def opening(data: bytes | bytearray) -> str:
    """Return the name of the protocol that a connection opens with, or an empty string.

    Args:
        data: everything that the client has sent so far, before any command was taken from it.
    """
    return next((name for name, pattern in _OPENINGS.items() if pattern.match(data)), "")


def farewell(protocol: str) -> bytes:
    """Return what is sent before the connection is closed: to a TLS client the line that memcached 1.6 answers.

    A TLS library reports such a line as `wrong version number`, and a connection without a reply as a network fault.
    """
    return b"ERROR\r\n" if protocol == TLS else b""
