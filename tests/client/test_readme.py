"""README's section "From Python", run as it stands there against a server of its own."""

from __future__ import annotations

import doctest
import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

from serving import serving

README = (Path(__file__).parents[2] / "README.md").read_text()
SECTION = README.partition("\n## From Python\n")[2].partition("\n## ")[0]
WRITTEN = "127.0.0.1:11211"


def test_the_examples(tmp_path: Path) -> None:
    store = tmp_path / "shop.sqlite"
    with serving(store) as served:
        lines = re.findall(r"^sqlite3 shop\.sqlite .*$", SECTION, re.MULTILINE)
        with closing(sqlite3.connect(store, isolation_level=None)) as file:
            for line in lines:
                file.execute(shlex.split(line)[2])
        text = SECTION.replace(WRITTEN, f"127.0.0.1:{served.port}")
        examples = doctest.DocTestParser().get_doctest(text, {}, "README.md", "README.md", 0)
        said: list[str] = []
        results = doctest.DocTestRunner().run(examples, out=said.append)
    assert (len(lines), results.attempted, results.failed) == (2, SECTION.count("\n>>> "), 0), "".join(said)
