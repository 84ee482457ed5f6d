"""Pages whose commands depend on one another run in one shell, and print what they show."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from documentation.blocks import ROOT, RUN
from documentation.journeys import Journey, tools
from helpers.example_packages import example_packages
from helpers.guide import Shell
from helpers.live import nightly

pytestmark = pytest.mark.live
# It measures two servers and runs a notebook: 13 s of CPU.
SLOW = {"docs/how-to/read-notebooks.md"}
PAGES = [
    nightly(page) if page in SLOW else page
    for page, test in RUN.items()
    if test == "tests/documentation/test_journeys.py"
]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_shows(page: str, tmp_path: Path) -> None:
    journey = Journey(page)
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    environment = {"PATH": tools(tmp_path / "bin"), "PYTHONPATH": str(example_packages())}
    with closing(Shell(tmp_path, journey.environment | environment)) as shell:
        journey.run(shell, install=False)
