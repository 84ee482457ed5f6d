"""Programs that the guides call."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers.live import missing_skips

from kvref_testbed.targets.artifacts import Artifact, extract, fetched
from kvref_testbed.targets.builds import MYSQL_5_6_ZIP, MYSQL_8_0_ZIP
from kvref_testbed.targets.progress import QUIET


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `kvref`, the newer `mysql`, and `mysqldump` of each version."""
    folder = tmp_path_factory.mktemp("programs")
    kept: dict[str, tuple[Artifact, tuple[str, ...]]] = {
        "8.0": (MYSQL_8_0_ZIP, ("bin/mysql", "bin/mysqldump", "lib/private/*")),
        "5.6": (MYSQL_5_6_ZIP, ("bin/mysqldump",)),
    }
    for version, (artifact, names) in kept.items():
        (folder / version).mkdir()
        with missing_skips():
            extract(fetched(artifact, QUIET), names, folder / version, QUIET)
    (folder / "kvref").write_text(f'#!/bin/sh\nexec {sys.executable} -m kvref "$@"\n')
    (folder / "kvref").chmod(0o755)
    for name in ("mysql", "mysqldump"):
        (folder / name).symlink_to(folder / "8.0" / "bin" / name)
    return folder
