"""The parsers and the verbs behind them, for any bytes in any pieces; what a long run found is tried again."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers.harness import Harness
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import messages, parsers
from fuzz.record import FULL, record
from fuzz.replies import BinaryReplies, TextReplies
from kvref.protocol.command_table import TEXT, TEXT_BEYOND_PLUGIN
from kvref.protocol.text import TextParser

CORPUS = Path(__file__).parent / "corpus"
SECONDS = 600 if FULL else 5
EXAMPLES = 20_000 if FULL else 300
EXPECTED = (
    "no bytes in any pieces raise an error in a parser, make it keep more than is bounded or change what it reads"
)
MAKERS = (messages.text, messages.binary)
seeds = st.integers(0, 1 << 60)


def test_every_verb_of_the_table_of_commands_is_sent() -> None:
    rng = random.Random(1)
    sent = {messages.text(rng).partition(b"\r\n")[0].partition(b" ")[0] for _ in range(50_000)}
    assert sent >= TEXT.keys() | TEXT_BEYOND_PLUGIN.keys()


def test_what_was_found_is_tried_again() -> None:
    found = sorted(CORPUS.iterdir())
    assert len(found) > 100
    for each in found:
        parsers.check(each.read_bytes())


@given(seeds, st.sampled_from(MAKERS), st.booleans(), st.binary(max_size=16))
@settings(max_examples=EXAMPLES, deadline=None)
def test_pieces_do_not_matter(seed: int, make: Callable[[random.Random], bytes], broken: bool, places: bytes) -> None:
    rng = random.Random(seed)
    body = b"".join(make(rng) for _ in range(rng.randrange(1, 6)))
    if broken:
        body = messages.mutated(rng, body)
    parsers.check(bytes([rng.randrange(3), len(places) % 16]) + places[: len(places) % 16] + body)


@given(st.binary(max_size=200))
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_bytes(data: bytes) -> None:
    parsers.check(data)


@pytest.fixture(scope="module", params=["kvref", "mysql-8.0", "mysql-5.6"])
def spoken_to(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    """Return an endpoint in this process."""
    harness = Harness(tmp_path_factory.mktemp("harness"), request.param)
    yield harness
    harness.close()


@given(seeds, st.sampled_from(MAKERS))
@settings(max_examples=EXAMPLES // 3, deadline=None)
def test_no_session_fails(spoken_to: Harness, seed: int, make: Callable[[random.Random], bytes]) -> None:
    """For any input, a session replies with complete replies, and the next session is answered too."""
    rng = random.Random(seed)
    block = messages.Source(rng, make, broken=0.0).block(20)
    # The first byte decides, and a first frame may have another one.
    reader = BinaryReplies() if block[0] == 0x80 else TextReplies(plugin=True)
    reply = spoken_to.say(block, f"{make.__name__} {seed}")
    reader.feed(reply.removesuffix(b"<EOF>"))
    reader.end()
    assert spoken_to.say(b"version\r\n", f"another than {seed}").startswith(b"VERSION ")


def test_the_check_sees_a_parser_that_depends_on_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = TextParser.feed

    def whole_only(parser: TextParser, data: bytes) -> None:
        feed(parser, data if data.endswith(b"\n") else b"")

    check = bytes([0, 2, 1, 1]) + b"get a\r\nget b\r\n"
    parsers.check(check)
    monkeypatch.setattr(TextParser, "feed", whole_only)
    with pytest.raises(parsers.ParserFaultError, match="are not what"):
        parsers.check(check)


@pytest.mark.nightly
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="atheris has no wheel for this Python")
@pytest.mark.timeout(SECONDS + 120)
def test_guided_by_coverage(tmp_path: Path) -> None:
    """A run of libFuzzer from the kept inputs on; a fault is written into a file, and its bytes are in the output."""
    if find_spec("atheris") is None:
        if os.environ.get("CI"):
            pytest.fail("CI is set and atheris is missing: install kvref[fuzz]")
        pytest.skip("atheris is missing: install kvref[fuzz]")
    limits = [f"-max_total_time={SECONDS}", "-max_len=2000", f"-artifact_prefix={tmp_path}/"]
    command = [sys.executable, str(CORPUS.parent / "guided.py"), *limits, str(tmp_path / "new"), str(CORPUS)]
    (tmp_path / "new").mkdir()
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS + 100)
    assert result.returncode == 0, result.stderr[-4000:]
    runs = next(int(line.split()[1]) for line in result.stderr.splitlines() if line.startswith("Done "))
    assert runs > len(list(CORPUS.iterdir()))
    record("fuzz-parsers", EXPECTED, runs, SECONDS, new_inputs=len(list((tmp_path / "new").iterdir())))
