"""Administration commands and rows of `stats`, sent to native memcached and to kvref: alike, or listed as a difference."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from helpers.live import target_or_skip
from helpers.serving import ask, serving

pytestmark = pytest.mark.live
PAGE = Path(__file__).parent.parent.parent / "docs" / "differences-from-memcached.md"
NO_EFFECT = "ERROR\r\n"
DELAYED = "CLIENT_ERROR delayed flush_all is not supported: send flush_all or flush_all 0\r\n"
# Commands by what kvref replies instead, and the words of the page that say so.
DIFFERENT = {
    **dict.fromkeys(("slabs reassign 1 2", "slabs automove 0", "slabs automove 1", "slabs automove x", "slabs automove ratio 0.5"), (NO_EFFECT, "`slabs`")),
    **dict.fromkeys(("lru tune 10 25 0.1 2.0", "lru mode flat", "lru mode segmented", "lru temp_ttl 60"), (NO_EFFECT, "`lru`")),
    "extstore free_memchunks 1 2": (NO_EFFECT, "`extstore`"),
    "stats extstore": (NO_EFFECT, "`stats sizes`"),
    **dict.fromkeys(("stats sizes", "stats sizes_enable", "stats sizes_disable"), ("END\r\n", "`stats sizes`")),
    **dict.fromkeys(("flush_all 1 2", "flush_all 2592001 x", "flush_all 3600"), (DELAYED, "`flush.delay`")),
}  # fmt: skip
ALIKE = (
    "flush_all", "flush_all 0", "flush_all 0 x", "flush_all 0 0", "flush_all -1", "flush_all -1 x", "flush_all x",
    "flush_all invalid", "flush_all 1x", "flush_all noreply 0", "flush_all 0 1 2", "flush_all 99999999999999999999",
    "flush_all +0", "shutdown", "shutdown graceful", "shutdown x", "shutdown noreply", "slabs", "slabs reassign",
    "slabs automove", "slabs automove 5", "slabs x", "refresh_certs", "refresh_certs x", "lru", "lru x", "lru_crawler",
    "lru_crawler x", "lru_crawler enable", "lru_crawler tocrawl 5", "lru_crawler sleep 100", "verbosity", "verbosity 1",
    "verbosity x", "verbosity 1 2", "cache_memlimit 64", "cache_memlimit", "cache_memlimit x", "cache_memlimit 1 2 3",
    "extstore", "misbehave", "me x", "stats proxy", "stats x", "stats reset", "stats reset x", "stats cachedump 1 1",
    "stats detail", "stats detail x", "stats detail on", "stats detail off", "mn x", "verbosity 0",
)  # fmt: skip
# Rows that kvref does not have, as the page says: settings and counters of what it does not have.
MEMORY = re.compile(
    r"(response_obj|read_buf|hash_|slab|lru_|log_|ext_|temp|worker_logbuf|watcher_logbuf)\w*|(hot|warm)_\w+|moves_\w+"
    r"|reserved_fds|malloc_fails|unexpected_napi_ids|num_napi_ids|round_robin_fallback|\w+_unfetched|evicted_active"
    r"|crawler_\w+|lrutail_reflocked|direct_reclaims|maxbytes|oldest|umask|growth_factor|chunk_size|num_threads_per_udp"
    r"|reqs_per_event|hashpower_init|tail_repair_time|inline_ascii_response|memory_file|ssl_\w+"
)


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    with ExitStack() as stack:
        memcached = stack.enter_context(target_or_skip("memcached"))
        yield memcached.port, stack.enter_context(serving(tmp_path_factory.mktemp("beside") / "rows.sqlite")).port


def test_administration_is_alike_or_listed(ports: tuple[int, int]) -> None:
    theirs, ours = ({command: _answer(port, command) for command in (*ALIKE, *DIFFERENT)} for port in ports)
    expected = {command: theirs[command] for command in ALIKE} | {name: reply for name, (reply, _) in DIFFERENT.items()}
    assert ours == expected
    page = PAGE.read_text()
    assert [name for name, (reply, words) in DIFFERENT.items() if words not in page or theirs[name] == reply] == []


@pytest.mark.parametrize("command", ["stats", "stats settings"])
def test_every_row_of_memcached_is_there_or_listed(ports: tuple[int, int], command: str) -> None:
    theirs, ours = (re.findall(r"STAT (\S+) ", _answer(port, command)) for port in ports)
    assert [name for name in theirs if name not in ours and not MEMORY.fullmatch(name)] == []


def _answer(port: int, command: str) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        return ask(client, f"{command}\r\n".encode()).decode()
