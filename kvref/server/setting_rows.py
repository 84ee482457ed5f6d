"""Rows of `stats settings` about listeners, under the names and in the words of memcached 1.6."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kvref.server.listeners.listener import Listener

# OpenSSL's numbers of the two modes that a listener can have: SSL_VERIFY_NONE, and SSL_VERIFY_PEER with
# SSL_VERIFY_FAIL_IF_NO_PEER_CERT.
_VERIFY: Final = {ssl.CERT_NONE: "0", ssl.CERT_REQUIRED: "3"}
_PEM: Final = "1"  # SSL_FILETYPE_PEM
NOT_SET: Final = "NULL"


def of_listeners(listeners: Sequence[Listener]) -> dict[str, str]:
    """Return the rows of these listeners: the first with TCP, with users or with TLS decides."""
    hosts = [each.address.host for each in listeners if not each.address.path]
    path = next((each.address.path for each in listeners if each.address.path), NOT_SET)
    users = next((str(each.auth_file) for each in listeners if each.auth_file is not None), "no")
    return {
        "tcpport": str(next((each.port for each in listeners if not each.address.path), 0)),
        "udpport": "0",
        "inter": ",".join(dict.fromkeys(hosts)) or NOT_SET,
        "domain_socket": path,
        "auth_enabled_ascii": users,
        **_of_tls(listeners),
    }


def _of_tls(listeners: Sequence[Listener]) -> dict[str, str]:
    for each in listeners:
        if each.certificates is not None and each.tls is not None:
            files, context = each.certificates, each.tls
            return {
                "ssl_enabled": "yes",
                "ssl_chain_cert": str(files.chain),
                "ssl_key": str(files.key or files.chain),
                "ssl_verify_mode": _VERIFY[context.verify_mode],
                "ssl_keyformat": _PEM,
                "ssl_ciphers": NOT_SET,
                "ssl_ca_cert": NOT_SET if files.clients is None else str(files.clients),
                "ssl_session_cache": "no",
                "ssl_kernel_tls": "yes" if context.options & getattr(ssl, "OP_ENABLE_KTLS", 0) else "no",
                "ssl_min_version": context.minimum_version.name.lower().replace("_", "."),
            }
    return {"ssl_enabled": "no"}
