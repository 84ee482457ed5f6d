"""Pages whose commands depend on one another run in one shell, and print what they show."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest
from documentation.blocks import ROOT, RUN
from guide import Shell, blocks, fits

from kvref_testbed.targets.ports import free_port

pytestmark = pytest.mark.live
PAGES = [page for page, test in RUN.items() if test == "tests/documentation/test_journeys.py"]
ADDRESSES = ("127.0.0.1:11211", "127.0.0.1:9150")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_shows(page: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    kvref = tmp_path / "bin" / "kvref"
    kvref.write_text(f'#!/bin/sh\nexec {sys.executable} -m kvref "$@"\n')
    kvref.chmod(0o755)
    free = [f"127.0.0.1:{free_port()}" for _ in ADDRESSES]
    text = (ROOT / page).read_text(encoding="utf-8")
    for written, own in zip(ADDRESSES, free, strict=True):
        text = text.replace(written, own)
    environment = {"PATH": f"{kvref.parent}:/usr/bin:/bin", "KVREF_LISTEN": free[0], "COLUMNS": "200"}
    with closing(Shell(tmp_path, environment)) as shell:
        for block in blocks(text):
            printed = shell.run(block.commands)
            assert block.shown is None or fits(block.shown, printed), f"{block.commands}\nprinted\n{printed}"
