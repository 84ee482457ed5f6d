"""Settings of cases: one start for each group, restored values and reported errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kvref_conformance.errors import NotRun
from kvref_conformance.sql.settings import INTERVAL, NEVER, Settings, by_command

pytestmark = pytest.mark.programs

FOUR = {"daemon_memcached_w_batch_size": 4}
IDLE = {INTERVAL: 2}


class Starts:
    """Notes each start and each new connection."""

    def __init__(self, reason: str | None) -> None:
        self.reason = reason
        self.seen: list[dict[str, int]] = []
        self.connections = 0
        self.prepared = 0

    def restart(self, settings: Mapping[str, int]) -> str | None:
        self.seen.append(dict(settings))
        return self.reason

    def prepare(self) -> None:
        assert len(self.seen) == self.prepared
        self.prepared += 1

    def connect(self) -> None:
        self.connections += 1


def test_equal_settings_need_one_start_and_none_bring_back_what_was(scripted: Callable[..., Any]) -> None:
    starts = Starts("")
    settings = Settings(scripted().address, starts.restart, starts.prepare, starts.connect)
    for wanted in (None, FOUR, FOUR, IDLE, None):
        settings.bring(wanted)
    assert starts.seen == [{INTERVAL: NEVER, **FOUR}, IDLE, {}]
    assert (starts.prepared, starts.connections) == (3, 3)


def test_a_refusal_is_the_reason_of_every_case_and_queried_once(scripted: Callable[..., Any]) -> None:
    starts = Starts("no setting 'x'")
    settings = Settings(scripted().address, starts.restart, starts.prepare, starts.connect)
    for _ in range(2):
        with pytest.raises(NotRun, match="no setting 'x'"):
            settings.bring(FOUR)
    settings.bring(None)
    assert len(starts.seen) == 1


def test_a_command_that_refuses_is_run_again_without_settings(tmp_path: Any) -> None:
    log = tmp_path / "log"
    script = tmp_path / "restart"
    script.write_text(f'echo "$@" >>{log}\n[ $# = 0 ]\n')
    assert by_command(f"sh {script}")(FOUR) != ""
    assert log.read_text() == "daemon_memcached_w_batch_size=4\n\n"
