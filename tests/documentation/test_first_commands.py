"""The first commands of a contributor on a fresh Debian 12, and how long the pages say that they take."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from documentation.blocks import ROOT
from helpers.bare_debian import bare_debian, environment
from helpers.guide import Shell, blocks

from kvref_testbed.targets.needs import tool

PAGE = ROOT / "CONTRIBUTING.md"
# Seconds of each command, the day and the number of processors: a copy of what the nightly test below writes.
RECORD = Path(__file__).with_name("first_commands.json")
# A machine has both; a folder made by debootstrap has neither.
MOUNTS = 'mount --bind /proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" bash -eu'


def commands() -> list[str]:
    """Return the commands of the first block of the page, without comments."""
    block = blocks(PAGE.read_text(encoding="utf-8"))[0]
    return [line.partition("#")[0].strip() for line in block.commands.splitlines()]


def test_the_page_states_the_times_that_were_measured() -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert list(record["seconds"]) == commands()
    times = [f"{seconds} s" for seconds in record["seconds"].values()]
    stated = f"{', '.join(times[:-1])} and {times[-1]} on {record['cores']} cores ({record['day']})"
    assert stated in re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8"))


@pytest.mark.nightly
@pytest.mark.live
@pytest.mark.timeout(1800)
def test_the_first_commands_succeed_on_a_fresh_debian(tmp_path: Path) -> None:
    """The times are left in `build/first_commands.json`, which replaces the record."""
    root = tmp_path / "root"
    bare_debian(root)
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), str(root / "kvref")], check=True)
    own = {name: value for name, value in environment().items() if os.environ[name] != value}
    here = own | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "PIP_QUIET": "1"}
    seconds = {}
    enter = [tool("unshare"), "--mount", "bash", "-c", MOUNTS, str(root)]
    with closing(Shell(root, here, enter)) as shell:
        for command in commands():
            began = time.monotonic()
            shell.run(f"(cd kvref && {command})")
            seconds[command] = round(time.monotonic() - began)
    record = {"day": time.strftime("%Y-%m-%d", time.gmtime()), "cores": os.cpu_count(), "seconds": seconds}
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build" / RECORD.name).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
