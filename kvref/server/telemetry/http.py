"""Serve `/metrics` and `/healthz` over HTTP in separate threads, with a timeout for slow clients."""

from __future__ import annotations

import logging
import re
import socket
import sys
import threading
from collections.abc import Callable, Collection
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from kvref.addresses import is_ip
from kvref.errors import printable

_log = logging.getLogger("kvref.metrics")

SECONDS: Final = 5.0  # for a whole exchange
MAX_CLIENTS: Final = 32  # clients at once; further ones are disconnected
_TEXT: Final = "text/plain; charset=utf-8"
_HOST: Final = re.compile(r"(?:\[(?P<address>[^\]]*)\]|(?P<name>[^:\[\]]+))(?::[0-9]*)?")


def is_known_host(header: str, names: Collection[str]) -> bool:
    """Return whether a Host header (NAME or NAME:PORT, an IPv6 address in brackets) names this server.

    A web page whose host name resolves to this machine (DNS rebinding) sends its own name and must not read the
    replies. It cannot use an address or `localhost`, which no other server can claim.
    """
    found = _HOST.fullmatch(header.strip().lower())
    if found is None:
        return False
    host = found["address"] or found["name"]
    name = host.removesuffix(".")
    return name == "localhost" or name.endswith(".localhost") or name in names or is_ip(host)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "kvref"
    sys_version = ""
    timeout = SECONDS

    def setup(self) -> None:
        super().setup()
        self._timer = threading.Timer(SECONDS, _shut_down, [self.connection])
        self._timer.daemon = True
        self._timer.start()

    def finish(self) -> None:
        self._timer.cancel()
        super().finish()

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        hosts = self.headers.get_all("Host", [])
        if len(hosts) > 1:
            self._reply(HTTPStatus.BAD_REQUEST, b"more than one Host\n", _TEXT)
            return False
        if hosts and not is_known_host(hosts[0], self.server.hosts):
            self._reply(HTTPStatus.MISDIRECTED_REQUEST, b"unknown Host: add it with --metrics-host\n", _TEXT)
            return False
        return True

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            encode, kind = choose_encoder(self.headers.get("Accept") or "")
            self._reply(HTTPStatus.OK, encode(self.server.registry), kind)
        elif path == "/healthz":
            problem = self.server.problem()
            status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
            line = printable(" ".join((problem or "ok").split()))
            self._reply(status, f"{line}\n".encode(), _TEXT)
        else:
            self._reply(HTTPStatus.NOT_FOUND, b"not found; try /metrics or /healthz\n", _TEXT)

    do_HEAD = do_GET  # noqa: N815 - the library's

    def __getattr__(self, name: str) -> Any:
        # The library looks up `do_` followed by any word that a client sends.
        if name.startswith("do_"):
            return self._refuse
        raise AttributeError(name)

    def _refuse(self) -> None:
        self._reply(HTTPStatus.METHOD_NOT_ALLOWED, b"GET or HEAD\n", _TEXT)

    def _reply(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's
        _log.debug("%s: %r", self.client_address, format % args)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self, listener: socket.socket, registry: CollectorRegistry, problem: Callable[[], str], hosts: Collection[str]
    ) -> None:
        self.registry = registry
        self.hosts = hosts
        self.problem = problem
        self._free = threading.BoundedSemaphore(MAX_CLIENTS)
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        listener.settimeout(None)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the library's
        if isinstance(sys.exception(), OSError):
            _log.debug("the client closed the connection during an HTTP exchange", exc_info=True)
        else:
            _log.exception("an HTTP exchange failed")


def serve(
    listeners: list[socket.socket], registry: CollectorRegistry, problem: Callable[[], str], hosts: Collection[str] = ()
) -> None:
    """Answer on listening sockets from now on, in threads that end with the process.

    Args:
        problem: returns why the server cannot serve, empty if it can; must not block.
        hosts: names that a Host header may have besides addresses, `localhost` and the machine's own name.
    """
    names = frozenset(name.lower().removesuffix(".") for name in (*hosts, socket.gethostname()))
    for listener in listeners:
        server = _Server(listener, registry, problem, names)
        # The server is never stopped, so that it need not poll for a stop request.
        threading.Thread(target=server.serve_forever, args=(3600.0,), name="kvref-metrics", daemon=True).start()


def _shut_down(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError as error:
        _log.debug("the client had already disconnected: %s", error)
