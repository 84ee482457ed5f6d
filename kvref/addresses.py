"""Where an endpoint listens, as a command line writes it."""

from __future__ import annotations

from dataclasses import dataclass

from kvref.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port; for a listener port 0 is any free one."""

    host: str
    port: int


def parse_address(text: str) -> Address:
    """Read HOST:PORT.

    Raises:
        ConfigError: no host, or a port that is no number from 0 to 65535.
    """
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and len(port) < 6 and int(port) <= 65535):
        raise ConfigError(f"address {text!r}: write HOST:PORT, for example 127.0.0.1:11211")
    return Address(host.strip("[]"), int(port))
