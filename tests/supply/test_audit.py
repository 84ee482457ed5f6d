"""`.ci/lock audit` distinguishes a lock without vulnerabilities, one with some, and a service that does not answer."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from supply.locked import CI, licences

KNOWN = "jinja2==2.4.1"  # a vulnerable release, by which .ci/lock audit checks that a service has data


@contextmanager
def service(*vulnerable: str) -> Iterator[str]:
    """Answer as the OSV service does, of which only these packages are known to be vulnerable."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name, found = requests["package"]["name"], {}
            if f"{name}=={requests['version']}" in vulnerable:
                affected = {
                    "package": {"name": name, "ecosystem": "PyPI"},
                    "ranges": [],
                    "versions": [requests["version"]],
                }
                found = {"vulns": [{"id": f"X-{name}", "summary": "made up", "affected": [affected]}]}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/query"
        finally:
            server.shutdown()
            thread.join()


def audit(url: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(CI / "lock"), "audit", "--vulnerability-service", "osv", "--osv-url", url]
    return subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=False)


@pytest.mark.nightly
def test_what_an_audit_says() -> None:
    locked = next(f"{pin}" for pin in licences.pins() if pin.name == "click")
    with service(KNOWN) as url:
        clean = audit(url)
        assert clean.returncode == 0, clean.stdout + clean.stderr
    with service(KNOWN, locked) as url:
        found = audit(url)
        assert (found.returncode, "X-click" in found.stdout) == (1, True), found.stdout + found.stderr
    with service() as url:
        blind = audit(url)
        assert (blind.returncode, "NOT AUDITED" in blind.stderr) == (3, True), blind.stdout
    away = audit(url)
    assert (away.returncode, "NOT AUDITED" in away.stderr) == (3, True), away.stdout
