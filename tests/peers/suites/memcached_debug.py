"""Start kvref with memcached's options, as memcached's own tests start `memcached-debug`.

PEER_STORE names a SQLite file that is copied for each start. Options that kvref has no use for (memory, threads, slabs)
are ignored; an option of a feature that kvref lacks ends the program with status 64.
"""

from __future__ import annotations

import getopt
import os
import shutil
import sys
import tempfile
from pathlib import Path

UNITS = {"k": 1024, "m": 1024 * 1024}
# As getopt reads them: memcached.c of 1.6.18.
SHORT = "a:A:bB:c:CdDe:f:F:hI:kl:Lm:Mn:No:p:P:rR:s:St:u:U:vVX:Y:Z"
SHORT = SHORT.replace("A:", "A").replace("F:", "F").replace("X:", "X").replace("D", "D:").replace("e:", "e:")
LONG = [
    "auth-file=",
    "conn-limit=",
    "enable-sasl",
    "enable-shutdown",
    "enable-ssl",
    "version",
    "extended=",
    "listen=",
    "max-item-size=",
]
LONG += ["memory-limit=", "port=", "threads=", "udp-port=", "unix-socket="]
HELP = "memcached 1.6.18\n"  # The tests look here for features: SASL, TLS, Unix sockets, a proxy.
TLS = {"ssl_chain_cert": "--tls-cert", "ssl_key": "--tls-key"}
LACKS = {
    "-S": "SASL of a system",
    "--enable-sasl": "SASL of a system",
}


def size(text: str) -> int:
    """Return the bytes that a size such as `2m` names."""
    unit = UNITS.get(text[-1:].lower())
    return int(text[:-1]) * unit if unit else int(text)


def extended(text: str) -> list[str]:
    """Return kvref's options for those of `-o`."""
    more: list[str] = []
    for each in text.split(","):
        setting, _, given = each.partition("=")
        if setting == "idle_timeout":
            more += ["--set", f"idle_timeout={given}"]
        elif setting in TLS:
            more += [TLS[setting], given]
    return more


def words(options: list[tuple[str, str]], store: str) -> list[str]:
    """Return the command that serves with the equivalents of memcached's options."""
    host, port, path = "127.0.0.1", "11211", ""
    more = ["--set", "maxconns=1024"]  # memcached's default
    for name, value in options:
        if name in LACKS:
            raise SystemExit(64)
        if name in {"-l", "--listen"}:
            host = value
            more += ["--open"] * (value not in ("127.0.0.1", "localhost"))
        elif name in {"-p", "--port"}:
            port = value
        elif name in {"-s", "--unix-socket"}:
            path = value
        elif name in {"-c", "--conn-limit"}:
            more += ["--set", f"maxconns={value}"]
        elif name in {"-I", "--max-item-size"}:
            more += ["--set", f"item_size_max={size(value)}"]
        elif name in {"-Y", "--auth-file"}:
            more += ["--auth-file", value]
        elif name in {"-o", "--extended"}:
            more += extended(value)
    return [
        sys.executable,
        "-m",
        "kvref",
        "serve",
        "--store",
        f"sqlite:///{store}",
        "--listen",
        f"unix:{path}" if path else f"{host}:{port}",
        *more,
    ]


def main() -> None:
    """Become `kvref serve`."""
    options, _ = getopt.gnu_getopt(sys.argv[1:], SHORT, LONG)
    if {"-h", "-V", "--version"} & dict(options).keys():
        sys.stdout.write(HELP)
        return
    folder = tempfile.mkdtemp(dir=Path(os.environ["PEER_STORE"]).parent)
    store = shutil.copy(os.environ["PEER_STORE"], folder)
    command = words(options, store)
    os.execv(command[0], command)


main()
