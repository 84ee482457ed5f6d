"""Commands and programs of the documentation run, or say why they do not."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from documentation.blocks import ROOT, RUN, WHOLE, Block, blocks, written_pages
from documentation.journeys import tools
from helpers.live import nightly
from helpers.serving import Served, serving

PAGES = written_pages()
WRITTEN = "127.0.0.1:11211"
# It starts `kvref spec` for each view of the specification: 15 s of CPU.
SLOW = {"docs/how-to/read-the-specification.md"}
SHELL_PAGES = [
    nightly(page) if page in SLOW else page
    for page, test in RUN.items()
    if test == "tests/documentation/test_blocks.py"
]


@pytest.mark.parametrize("page", PAGES)
def test_a_block_is_run_or_says_why_not(page: str) -> None:
    whole = WHOLE.search(PAGES[page])
    unmarked = [block.text for block in blocks(PAGES[page]) if not block.reason]
    assert not (page in RUN and whole), "the page is run, and says that it is not"
    assert page in RUN or whole or not unmarked, f"add <!-- not run: REASON --> in front of: {unmarked}"


@pytest.mark.parametrize("test", sorted(set(RUN.values())))
def test_a_test_that_runs_a_page_is_there(test: str) -> None:
    assert (ROOT / test).is_file()


@pytest.mark.parametrize("page", SHELL_PAGES)
def test_a_page_runs_from_its_first_block_to_its_last(page: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": tools(tmp_path / "bin"), "COLUMNS": "200"}
    folder = tmp_path / "work"
    folder.mkdir()
    served: Served | None = None
    with ExitStack() as ends:
        for block in blocks(PAGES[page]):
            if block.reason:
                continue
            prepared, serve, rest = block.text.partition("kvref serve ")
            _run(Block(block.kind, prepared, "", None if serve else block.shown), folder, environment, served)
            if serve:
                (store,) = (word for word in rest.split() if word.startswith("sqlite:///"))
                served = ends.enter_context(serving(folder / store.removeprefix("sqlite:///")))
        assert (served is not None) == ("kvref serve " in PAGES[page])
        if served is None:
            return
        with served.connect() as client:
            client.sendall(b"version\r\n")
            assert client.recv(100).startswith(b"VERSION ")


def _run(block: Block, folder: Path, environment: dict[str, str], served: Served | None) -> None:
    """Run one block; what is shown below it must come."""
    text = block.text if served is None else block.text.replace(WRITTEN, f"127.0.0.1:{served.port}")
    command = [sys.executable, "-c", text] if block.kind == "python" else ["bash", "-ec", text]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{text}\n{done.stderr}"
    if block.shown is not None:
        assert done.stdout == block.shown, text
