"""The settings that histories are held under; each group is one start of the endpoint."""

from __future__ import annotations

from typing import Final

LARGE: Final = 1000


def _settings(writes: int, reads: int, level: int, **more: int) -> dict[str, int]:
    return {
        "daemon_memcached_w_batch_size": writes,
        "daemon_memcached_r_batch_size": reads,
        "innodb_api_trx_level": level,
        **more,
    }


GROUPS: Final = {
    "level-0": _settings(4, LARGE, 0),
    "level-1": _settings(3, 3, 1),
    "level-2": _settings(LARGE, 4, 2),
    "level-3": _settings(LARGE, 1, 3),
    "level-2-w1": _settings(1, 2, 2),
    "level-3-large": _settings(2, LARGE, 3),
    "lock-wait-over": _settings(LARGE, LARGE, 0, innodb_lock_wait_timeout=1),
}
