"""Free ports: processes that draw at the same moment get different ones."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from kvref.errors import TargetError
from kvref_testbed.targets import ports

pytestmark = pytest.mark.programs
# Enough that processes which draw for themselves certainly draw some ports twice; reserved in a folder of the test.
DRAW = """
import sys
from pathlib import Path
from kvref_testbed.targets import ports
ports._FOLDER = Path(sys.argv[1])
for _ in range(50):
    print(*ports.free_ports(8))
"""


@pytest.fixture
def reservations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of reserved ports, in a folder of the test."""
    monkeypatch.setattr(ports, "_FOLDER", tmp_path)
    ports.free_port()
    (file,) = tmp_path.iterdir()
    return file


def test_processes_get_different_ports(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DRAW, str(tmp_path)]
    drawing = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    drawn = [port for process in drawing for port in process.communicate(timeout=60)[0].split()]
    assert len(drawn) == len(set(drawn)) == 1600


def test_a_reservation_ends(reservations: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_COUNT", 1)
    monkeypatch.setattr(ports, "_FIRST", int(reservations.read_text().split()[0]))
    with pytest.raises(TargetError, match="no free port"):
        ports.free_port()
    later = time.time() + 121
    monkeypatch.setattr(time, "time", lambda: later)
    assert ports.free_port() == ports._FIRST
