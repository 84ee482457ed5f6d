"""The example for FastAPI runs as its first lines say, and its rows are in the table; tests/documentation runs the others."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.example_packages import EXAMPLES, example_packages
from helpers.serving import serving
from helpers.waiting import until_listening

from kvref_testbed.targets.ports import free_port

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def packages() -> Path:
    return example_packages()


class Site:
    """An application that answers on a port."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    def send(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send a request with a JSON body; return status and decoded body, None for an empty one."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with self._opener.open(request, timeout=30) as reply:
                text = reply.read()
                return reply.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, None


@contextmanager
def site(words: list[str], port: int, packages: Path, kvref_port: int) -> Iterator[Site]:
    environment = os.environ | {
        "PYTHONPATH": f"{packages}{os.pathsep}{EXAMPLES}", "KVREF_ADDRESS": f"127.0.0.1:{kvref_port}",
    }  # fmt: skip
    with subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            until_listening(("127.0.0.1", port), lambda: process.poll() is None).close()
            yield Site(port)
        finally:
            process.terminate()


@contextmanager
def shop(folder: Path) -> Iterator[tuple[int, Path]]:
    """Serve the table of examples/shop.sql."""
    store = folder / "shop.sqlite"
    subprocess.run(
        [sys.executable, "-m", "kvref", "init", "--store", f"sqlite:///{store}"], check=True, capture_output=True
    )
    with closing(sqlite3.connect(store)) as file:
        file.executescript((EXAMPLES / "shop.sql").read_text())
    with serving(store) as served:
        yield served.port, store


def rows(store: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(store)) as file:
        return file.execute(statement).fetchall()


def test_items_of_fastapi_are_rows(tmp_path: Path, packages: Path) -> None:
    with shop(tmp_path) as (kvref_port, store):
        port = free_port()
        words = ["-m", "uvicorn", "--app-dir", "examples", "fastapi_items:app", "--port", str(port)]
        with site(words, port, packages, kvref_port) as found:
            assert found.send("PUT", "/items/1", {"name": "pen", "price": 120}) == (204, None)
            assert found.send("PUT", "/items/2", {"name": "ink"}) == (204, None)
            assert found.send("PATCH", "/items/1", {"price": 130}) == (204, None)
            assert found.send("GET", "/items/1") == (200, {"name": "pen", "price": 130})
            assert found.send("GET", "/items?first=1&last=9") == (
                200, {"1": {"name": "pen", "price": 130}, "2": {"name": "ink", "price": None}},
            )  # fmt: skip
            assert (found.send("GET", "/items/3")[0], found.send("PATCH", "/items/3", {"price": 1})[0]) == (404, 404)
        assert rows(store, "SELECT id, name, price FROM items ORDER BY id") == [("1", "pen", 130), ("2", "ink", None)]
