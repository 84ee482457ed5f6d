"""What monitoring of memcached reads is there: memcstat prints every row, and the rows that others look for have values."""

from __future__ import annotations

import re
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from helpers.serving import Served, ask, serving
from peers.tools import tool

# Rows of `stats` that each reads, but those of memcached's own memory (slabs, lru, hash table).
READ_BY = {
    "collectd": "rusage_user rusage_system threads curr_connections listen_disabled_num curr_items bytes limit_maxbytes"
    " cmd_get cmd_set cmd_flush cmd_touch get_hits get_misses evictions incr_hits incr_misses decr_hits decr_misses"
    " bytes_read bytes_written",
    "Telegraf": "accepting_conns auth_cmds auth_errors bytes bytes_read bytes_written cas_badval cas_hits cas_misses"
    " cmd_flush cmd_get cmd_set cmd_touch conn_yields connection_structures curr_connections curr_items decr_hits"
    " decr_misses delete_hits delete_misses evictions get_hits get_misses incr_hits incr_misses limit_maxbytes"
    " listen_disabled_num max_connections reclaimed rejected_connections threads total_connections total_items"
    " touch_hits touch_misses uptime",
    "memcached_exporter": "time uptime version rusage_user rusage_system bytes_read bytes_written curr_connections"
    " total_connections rejected_connections conn_yields listen_disabled_num bytes limit_maxbytes curr_items total_items"
    " evictions reclaimed get_hits get_misses delete_hits delete_misses incr_hits incr_misses decr_hits decr_misses"
    " cas_hits cas_misses cas_badval touch_hits touch_misses cmd_set cmd_flush",
}
SETTINGS = "maxconns item_size_max num_threads"  # of `stats settings`


def rows(served: Served, words: str = "stats") -> dict[str, str]:
    """Return the rows that a client receives."""
    with served.connect() as client:
        return dict(re.findall(r"STAT (\S+) ([^\r]*)\r\n", ask(client, words.encode() + b"\r\n").decode()))


@pytest.mark.live
@pytest.mark.parametrize("words", [[], ["--args=settings"]], ids=["stats", "settings"])
@pytest.mark.parametrize("profile", ["kvref", "mysql-8.0", "mysql-5.6"])
def test_memcstat(tmp_path: Path, profile: str, words: list[str]) -> None:
    with serving(tmp_path / "s.sqlite", "--profile", profile) as served:
        command = [tool("memcstat"), f"--servers=127.0.0.1:{served.port}", *words]
        output = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (output.returncode, output.stderr) == (0, "")
        shown = dict(re.findall(r"^\t ?(\w+): (.*)$", output.stdout, re.MULTILINE))
        reported = rows(served, "stats settings" if words else "stats")
    assert list(shown) == list(reported)
    assert shown["cas_enabled" if words else "pid"] == reported["cas_enabled" if words else "pid"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_rows_that_monitoring_reads(tmp_path: Path, workers: str) -> None:
    limited = serving(tmp_path / "s.sqlite", "--workers", workers, "--set", "maxconns=4")
    with limited as served, ExitStack() as stack:
        kept = [stack.enter_context(served.connect()) for _ in range(4)]
        for each in kept:
            assert ask(each, b"") == b""
        settings = dict(re.findall(r"STAT (\S+) ([^\r]*)\r\n", ask(kept[0], b"stats settings\r\n").decode()))
        assert [name for name in SETTINGS.split() if not settings[name].isdigit()] == []
        turned_away = stack.enter_context(socket.create_connection(("127.0.0.1", served.port), timeout=10))
        assert turned_away.recv(100).startswith(b"ERROR Too many open connections")
        found = dict(re.findall(r"STAT (\S+) ([^\r]*)\r\n", ask(kept[0], b"stats\r\n").decode()))
    for reader, names in READ_BY.items():
        assert [name for name in names.split() if not found.get(name)] == [], reader
    assert (found["max_connections"], found["rejected_connections"], found["threads"]) == ("4", "1", workers)
    assert found["curr_connections"] == "5"  # with the socket that is listened on
