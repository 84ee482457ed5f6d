"""A client for a server's `/metrics` and `/healthz`, which requests them as a scraper does."""

from __future__ import annotations

import http.client
import re

from helpers.serving import Served
from helpers.waiting import until_equal

AT = ("--metrics", "127.0.0.1:0")  # options of `serving`


_PORTS: dict[int, int] = {}  # by process: a test may forget the log


def port_of(served: Served) -> int:
    """Return the port that the log names."""
    if served.process.pid not in _PORTS:
        match = re.search(r"metrics on http://127\.0\.0\.1:(\d+)/metrics", served.wait_for("metrics on"))
        assert match is not None
        _PORTS[served.process.pid] = int(match[1])
    return _PORTS[served.process.pid]


def fetch(served: Served, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    """Return status and text; fails where there is none in three seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port_of(served), timeout=3)
    try:
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


def metrics(served: Served) -> dict[str, float]:
    """Return each sample's value by its name with labels."""
    status, text = fetch(served, "/metrics")
    assert status == 200
    samples = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


def wait_for_health(served: Served, status: int, text: str, seconds: float = 15.0) -> str:
    """Request the health until it has this status and text; return the body."""
    found: list[str] = []

    def received() -> tuple[int, bool]:
        number, body = fetch(served, "/healthz")
        found[:] = [body]
        return number, text in body

    until_equal(received, (status, True), seconds=seconds)
    return found[0]
