"""Private instances: any number at once, unknown to the state folder, gone with their block or with their process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.live import nightly, target_or_skip
from helpers.waiting import until

from kvref_testbed import targets
from kvref_testbed.targets import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("state")]


@pytest.mark.nightly
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
import signal
from kvref_testbed import targets
with targets.running("memcached") as target:
    print(target.pid, target.folder, flush=True)
    signal.pause()
"""


def test_it_ends_with_a_killed_owner(available: Callable[[str], None]) -> None:
    available("memcached")
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid, folder = owner.stdout.readline().split()
        assert Path(f"/proc/{pid}").exists()
        os.kill(owner.pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{pid}").exists() and not Path(folder).exists())


@pytest.mark.parametrize("name", [nightly("mysql-8.0-plugin"), nightly("mysql-5.6-plugin"), "kvref-sqlite"])
def test_one_is_started_again_with_settings_at_the_same_address_and_on_the_same_data(
    name: str, available: Callable[[str], None]
) -> None:
    available(name)
    with targets.private(name) as instance:
        before = instance.target
        assert _said(before.memcached(), b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n"
        instance.restart({"daemon_memcached_w_batch_size": 2, "daemon_memcached_r_batch_size": 100})
        assert instance.target.address == before.address
        assert instance.target.pid != before.pid
        assert _said(before.memcached(), b"get k\r\n").startswith(b"VALUE k 0 1\r\nx\r\n")
    assert not Path(f"/proc/{instance.target.pid}").exists()


def _said(address: str, request: bytes) -> bytes:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(request)
        return connection.recv(1024)
