"""Python examples of the README and of the pages about the clients, run as they are against a server of their own."""

from __future__ import annotations

import doctest
import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from helpers.serving import serving

ROOT = Path(__file__).parents[2]
WRITTEN = "127.0.0.1:11211"


@pytest.mark.parametrize(
    ("page", "statements"),
    [
        ("docs/how-to/use-from-python.md", 2),
        ("README.md", 0),
        ("docs/reference/api/client.md", 0),
        ("docs/reference/api/client-asyncio.md", 0),
        ("docs/reference/api/client-views.md", 0),
        ("docs/reference/api/client-asyncio-views.md", 0),
    ],
)
def test_the_examples(tmp_path: Path, page: str, statements: int) -> None:
    written = (ROOT / page).read_text()
    store = tmp_path / "shop.sqlite"
    with serving(store) as served:
        lines = re.findall(r"^sqlite3 shop\.sqlite .*$", written, re.MULTILINE)
        with closing(sqlite3.connect(store, isolation_level=None)) as file:
            for line in lines:
                file.execute(shlex.split(line)[2])
        text = written.replace(WRITTEN, f"127.0.0.1:{served.port}")
        examples = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
        reply: list[str] = []
        results = doctest.DocTestRunner().run(examples, out=reply.append)
    assert (len(lines), results.attempted, results.failed) == (statements, written.count("\n>>> "), 0), "".join(reply)
