"""Private instances: any number at once, unknown to the state folder, gone with their block or with their process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live import target_or_skip

from kvref import targets
from kvref.errors import TargetError
from kvref.targets import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("state")]


def test_two_at_once_do_not_meet() -> None:
    with target_or_skip("mysql-8.0-plugin") as one, target_or_skip("mysql-8.0-plugin") as other:
        assert one.address != other.address
        assert one.sql != other.sql
        assert one.folder != other.folder
        assert targets.find(one.address) is None
        assert {each.state for each in targets.status()} == {"stopped"}
    for each in (one, other):
        assert not Path(f"/proc/{each.pid}").exists()
        assert not each.folder.exists()


def test_kvref_is_booted_to_answer_as_a_profile_and_a_plugin_is_what_it_is() -> None:
    assert catalogue.options_for("mysql-5.6-plugin", "mysql-8.0") == ()
    with targets.running("kvref-sqlite", catalogue.options_for("kvref-sqlite", "mysql-5.6")) as target:
        assert target.version == "5.6.14"


def test_it_ends_with_a_failing_block() -> None:
    with pytest.raises(ZeroDivisionError), target_or_skip("memcached") as target:
        raise ZeroDivisionError
    assert not Path(f"/proc/{target.pid}").exists()
    assert not target.folder.exists()


OWNER = """
import time
from kvref import targets
with targets.running("memcached") as target:
    print(target.pid, target.folder, flush=True)
    time.sleep(60)
"""


def test_it_ends_with_a_killed_owner(available: Callable[[str], None]) -> None:
    available("memcached")
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid, folder = owner.stdout.readline().split()
        assert Path(f"/proc/{pid}").exists()
        os.kill(owner.pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while (Path(f"/proc/{pid}").exists() or Path(folder).exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()
    assert not Path(folder).exists()


def test_a_refused_option_is_explained_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    explained = pytest.raises(TargetError, match=r"memcached exited with status \d+ while(?s:.*)no-such-option")
    with explained, target_or_skip("memcached", ["--no-such-option"]):
        pytest.fail("it started")
    assert not list(tmp_path.glob("kvref-*"))


def test_a_misspelt_plugin_option_is_refused() -> None:
    explained = pytest.raises(TargetError, match=r"no variable 'daemon_memcached_w_batchsize'; it has .*w_batch_size")
    with explained, target_or_skip("mysql-5.6-plugin", ["--daemon-memcached-w-batchsize=10"]):
        pytest.fail("it started")
