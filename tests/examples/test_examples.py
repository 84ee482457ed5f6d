"""The examples run as their first lines say, over HTTP, and their rows are in the tables."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from platformdirs import user_cache_path
from serving import serving

from kvref_testbed.targets.ports import free_port

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
START_SECONDS = 60.0


@pytest.fixture(scope="module")
def packages() -> Path:
    """Return a folder with the packages of the examples, kept in the user's cache."""
    pins = (EXAMPLES / "requirements.txt").read_bytes()
    key = hashlib.sha256(pins + repr(sys.version_info[:2]).encode()).hexdigest()[:16]
    folder = user_cache_path("kvref") / "examples" / key
    if not folder.exists():
        building = folder.with_name(f"{key}.{os.getpid()}")
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        done = subprocess.run(
            [*pip, "--target", str(building), "-r", str(EXAMPLES / "requirements.txt")],
            capture_output=True, text=True, timeout=280, check=False,
        )  # fmt: skip
        if done.returncode:
            shutil.rmtree(building, ignore_errors=True)
            reason = f"pip cannot install examples/requirements.txt: {done.stderr[-300:]}"
            pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
        if not folder.exists():
            building.rename(folder)
    return folder


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
            found = Site(port)
            deadline = time.monotonic() + START_SECONDS
            while True:
                try:
                    found.send("GET", "/nothing")
                    break
                except urllib.error.URLError:
                    assert process.poll() is None, process.communicate()[0]
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            yield found
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


def test_django_counts_visits_in_the_cache_and_in_sessions(tmp_path: Path, packages: Path) -> None:
    store = tmp_path / "cache.sqlite"
    subprocess.run(
        [sys.executable, "-m", "kvref", "init", "--store", f"sqlite:///{store}"], check=True, capture_output=True
    )
    with serving(store) as served:
        port = free_port()
        words = ["examples/django_cache.py", "runserver", "--noreload", str(port)]
        with site(words, port, packages, served.port) as first:
            assert first.send("GET", "/") == (200, {"all": 1, "yours": 1})
            assert first.send("GET", "/") == (200, {"all": 2, "yours": 2})
            assert Site(port).send("GET", "/") == (200, {"all": 3, "yours": 1})
        # Its keys are in the table: two sessions, and the visits, which do not expire.
        keys = rows(store, "SELECT CAST(cache_key AS TEXT) FROM cache ORDER BY 1")
        assert [key[:9] for (key,) in keys] == [":1:django", ":1:django", ":1:visits"]


def test_items_of_flask_are_rows(tmp_path: Path, packages: Path) -> None:
    with shop(tmp_path) as (kvref_port, store):
        port = free_port()
        words = ["-m", "flask", "--app", "examples/flask_items", "run", "--port", str(port)]
        with site(words, port, packages, kvref_port) as found:
            assert found.send("GET", "/items/1")[0] == 404
            assert found.send("PUT", "/items/1", {"name": "pen", "price": 120}) == (204, None)
            assert found.send("PATCH", "/items/1", {"price": 130}) == (204, None)
            assert found.send("PUT", "/items/1", {"price": 1})[0] == 400
            assert found.send("GET", "/items/1") == (200, {"name": "pen", "price": 130})
            assert found.send("PATCH", "/items/2", {"price": 1})[0] == 404
            assert rows(store, "SELECT id, name, price FROM items") == [("1", "pen", 130)]
            assert (found.send("DELETE", "/items/1")[0], found.send("DELETE", "/items/1")[0]) == (204, 404)


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
