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
LONG = ["auth-file=", "conn-limit=", "enable-sasl", "enable-shutdown", "extended=", "listen=", "max-item-size="]
LONG += ["memory-limit=", "port=", "threads=", "udp-port=", "unix-socket="]
HELP = "memcached 1.6.18\n"  # The tests look here for features: SASL, TLS, Unix sockets, a proxy.
LACKS = {
    "-s": "Unix sockets",
    "-Z": "TLS options of memcached",
    "-S": "SASL of a system",
    "--enable-sasl": "SASL of a system",
}


def size(text: str) -> int:
    """Return the bytes that a size such as `2m` names."""
    unit = UNITS.get(text[-1:].lower())
    return int(text[:-1]) * unit if unit else int(text)


def words(options: list[tuple[str, str]], store: str) -> list[str]:
    """Return the command that serves what memcached's options ask for."""
    host, port = "127.0.0.1", "11211"
    more: list[str] = []
    for name, value in options:
        if name in LACKS:
            raise SystemExit(64)
        if name in {"-l", "--listen"}:
            host = value
        elif name in {"-p", "--port"}:
            port = value
        elif name in {"-c", "--conn-limit"}:
            more += ["--set", f"maxconns={value}"]
        elif name in {"-I", "--max-item-size"}:
            more += ["--set", f"item_size_max={size(value)}"]
        elif name in {"-Y", "--auth-file"}:
            more += ["--auth-file", value]
        elif name in {"-o", "--extended"}:
            for each in value.split(","):
                setting, _, number = each.partition("=")
                if setting == "idle_timeout":
                    more += ["--set", f"idle_timeout={number}"]
    return [
        sys.executable,
        "-m",
        "kvref",
        "serve",
        "--store",
        f"sqlite:///{store}",
        "--listen",
        f"{host}:{port}",
        *more,
    ]


def main() -> None:
    """Become `kvref serve`."""
    options, _ = getopt.gnu_getopt(sys.argv[1:], SHORT, LONG)
    if "-h" in dict(options):
        sys.stdout.write(HELP)
        return
    folder = tempfile.mkdtemp(dir=Path(os.environ["PEER_STORE"]).parent)
    store = shutil.copy(os.environ["PEER_STORE"], folder)
    command = words(options, store)
    os.execv(command[0], command)


main()
