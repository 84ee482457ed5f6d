"""TLS of a listener, by the standard library."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from kvref.errors import ConfigError


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
        self._load(context)
        if self.clients is not None:
            try:
                context.load_verify_locations(self.clients)
            except OSError as error:
                raise ConfigError(f"tls_client_ca={self.clients}: {_why(error)}: name a PEM file") from error
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self.chain, self.key, _no_passphrase)
        except OSError as error:
            key = "" if self.key is None else f", tls_key={self.key}"
            raise ConfigError(f"tls_cert={self.chain}{key}: {_why(error)}: name PEM files that match") from error


def _no_passphrase() -> str:
    raise ConfigError("tls_key: the key is encrypted with a passphrase: name a key without one")


def _why(error: OSError) -> str:
    if not isinstance(error, ssl.SSLError):
        return str(error.strerror)
    return error.reason.replace("_", " ").lower() if error.reason else "it has no such PEM block"
