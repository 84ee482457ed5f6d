"""Random commands of 16 clients under faults: every key's history is as promised, whatever happened.

KVREF_FAULT_LENGTH=full runs the cycles of the report, else each fault comes once. KVREF_CONSISTENCY names a file that gets
a line for each system; KVREF_CONSISTENCY_FOLDER a folder that keeps histories that are not as promised.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest
from consistency.cycles import play
from consistency.systems import SETUPS, Setup
from faults.description import FULL

pytestmark = [pytest.mark.live, pytest.mark.nightly, pytest.mark.timeout(7200 if FULL else 600)]


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.name)
def test_histories_are_as_promised(setup: Setup, tmp_path: Path) -> None:
    folder = Path(os.environ.get("KVREF_CONSISTENCY_FOLDER", tmp_path))
    began = time.monotonic()
    with setup.serve(tmp_path) as system:
        cycles = setup.cycles if FULL else len(system.faults)
        found = play(
            system.connect, system.faults, cycles, folder, re.sub(r"\W+", "-", setup.name), session=setup.session
        )
    if record := os.environ.get("KVREF_CONSISTENCY"):
        row = {"system": setup.name, "seconds": round(time.monotonic() - began, 1), **vars(found)}
        with Path(record).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row) + "\n")
    assert found.wrong == []
    assert found.faults.total() == cycles
    assert found.faults.keys() == system.faults.keys()
    if setup.session and FULL:
        assert found.stale > 0, "no secondary was read"
