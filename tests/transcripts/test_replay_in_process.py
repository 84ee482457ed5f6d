"""The recordings of both plugins, replayed by the server's code in this process, without a wait.

Each part of a set is replayed as one of the two versions here, and at night as the other one too; `.ci/nightly` also replays
all of them on servers. Left out are those that need what only a server has: settings, counters of
its process, another SQL connection with an open transaction, a crowd of connections, a port that stays closed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from transcripts.harness_target import AT_ONCE, HarnessTarget, Machine

from kvref_conformance import corpus
from kvref_conformance.corpus import listing, observe, silences
from kvref_conformance.corpus.compare import ServerKind, differences
from kvref_conformance.corpus.conversation import Conversation, Recorded
from kvref_conformance.corpus.targets.kvref_process import SETTINGS
from kvref_conformance.corpus.templates import sent
from kvref_conformance.judging import player as steps_player
from kvref_conformance.steps import Crowd, Send
from kvref_conformance.translation import session

if TYPE_CHECKING:
    from pathlib import Path

TRANSACTION = re.compile(r"BEGIN|START TRANSACTION|LOCK|autocommit")
COUNTERS = re.compile(r"stats( reset)?\r\n|8010000[05]")
# A connection that a reload closes; `stats` in pieces; a command that waits.
OF_A_SERVER = {"core:runtime-032", "more:count-006", "core:map-085"}
PARTS = 6
VERSIONS = {"8.0.33": "mysql-8.0", "5.6.14": "mysql-5.6"}


def tier(number: int, name: str, part: int) -> pytest.MarkDecorator | tuple[()]:
    """Return the mark of a part of a set for a version, by the version's number in the list."""
    if (name, part) == ("core", 0):
        return ()  # the unit tier has the first part of the largest set
    return pytest.mark.nightly if (number + part) % 2 else pytest.mark.long


SAMPLES = [
    pytest.param(version, profile, name, part, marks=tier(number, name, part))
    for number, (version, profile) in enumerate(VERSIONS.items())
    for name in corpus.SETS
    for part in range(PARTS)
]


def needs_a_server(conversation: Conversation) -> bool:
    def of_a_step(recorded: Recorded) -> bool:
        if isinstance(recorded.step, Send):
            parts = sent(recorded.step)
            return isinstance(parts, str) and COUNTERS.match(parts) is not None
        return isinstance(recorded.step, Crowd) or TRANSACTION.search(recorded.statement or "") is not None

    options = {option.removeprefix("--").partition("=")[0] for option in conversation.options}
    return bool(conversation.port or options & SETTINGS) or any(map(of_a_step, conversation.steps))


@pytest.mark.parametrize(("version", "profile", "name", "part"), SAMPLES)
def test_recordings_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, profile: str, name: str, part: int
) -> None:
    machine, rows = Machine(tmp_path, profile), listing.load()
    for module in (observe, steps_player, silences, session):
        monkeypatch.setattr(module, "time", machine)
    target, replayed, different = HarnessTarget(machine, version), 0, {}
    for key, conversation in list(corpus.load(name).items())[part::PARTS]:
        citation = f"{name}:{key}"
        listed = citation in OF_A_SERVER or listing.find(rows, citation, version) is not None
        if version in conversation.versions() and not listed and not needs_a_server(conversation):
            played = observe.play(conversation, target, AT_ONCE)
            replayed += 1
            if found := differences(conversation, played, version, ServerKind.KVREF_OVER_OTHER_SQL):
                different[citation] = found
    machine.stop()
    assert different == {}
    assert replayed > (1 if name == "tx" else 20)
