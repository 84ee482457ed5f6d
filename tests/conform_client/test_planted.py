"""The judge of clients: each planted defect fails its requirement, and a correct client fails none."""

from __future__ import annotations

import ctypes.util
import socket
import ssl
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from kvref.errors import KvrefError
from kvref_conformance.clients.adapter import Adapter, AdapterError
from kvref_conformance.clients.judge import FAILS, HOLDS, UNSUPPORTED, Judged, judge_client
from kvref_conformance.clients.requirements import load
from kvref_conformance.clients.server import ScriptedServer
from kvref_conformance.clients.tls import AUTHORITY, openssl
from kvref_conformance.interop.rows import SCRIPTS

pytestmark = pytest.mark.programs

SMALL = Path(__file__).with_name("small_client.py")
TIMEOUT = 0.12
PLANTED = {
    "one receive": "KC-SPLIT-001",
    "keeps a late connection": "KC-LATE-002",
    "no timeout": "KC-SILENT-001",
    "never connects again": "KC-CLOSE-001",
    "repeats": "KC-CLOSE-005",
    "end is a line end": "KC-TRUNC-017",
    "trusts lengths": "KC-LENGTH-003",
    "errors are misses": "KC-ERROR-003",
    "any word": "KC-ERROR-002",
    "rows by position": "KC-ROWS-001",
    "any row": "KC-ROWS-003",
    "reads stray bytes": "KC-SURPLUS-014",
    "short cas": "KC-CAS-001",
    "values are lines": "KC-VALUE-001",
    "any key": "KC-KEY-001",
    "cuts keys": "KC-KEY-012",
    "leading digits": "KC-WORD-010",
    "any certificate": "KC-TLS-008",
    "any host": "KC-TLS-009",
    "no stray bytes within TLS": "KC-TLS-040",
    "authenticates once": "KC-AUTH-007",
    "any reply to credentials": "KC-AUTH-024",
    "password in errors": "KC-AUTH-012",
    "any line is a miss": "KC-QUIET-006",
}
# Defects that fail a second requirement.
ALSO = {
    "any certificate": "KC-TLS-013",
    "reads stray bytes": "KC-TLS-040",
    "end is a line end": "KC-TLS-030",
    "no timeout": "KC-TLS-037",
}


def judged(words: list[str], *only: str) -> Judged:
    chosen = [each for each in load() if not only or each.id in only]
    return judge_client([sys.executable, *words], "text", chosen, TIMEOUT)


def not_holding(one: Judged) -> dict[str, str]:
    return {key: each.why for key, each in one.verdicts.items() if each.outcome != HOLDS}


@pytest.mark.parametrize(("defect", "requirement"), [*PLANTED.items(), *ALSO.items()])
def test_a_defect_fails_its_requirement(defect: str, requirement: str) -> None:
    verdict = judged([str(SMALL), defect], requirement).verdicts[requirement]
    assert verdict.outcome == FAILS
    assert 1 <= len(verdict.steps) <= 10
    assert any(event.data for step in verdict.steps for event in step.wire)


def test_a_correct_client_fails_nothing() -> None:
    one = judged([str(SMALL), "none"])
    assert not_holding(one) == {}
    assert len(one.verdicts) == sum("text" in each.protocols for each in load())


@pytest.mark.parametrize("script", ["use_kvref.py", "use_kvref_async.py"])
def test_clients_of_kvref_fail_nothing(script: str) -> None:
    assert not_holding(judged([str(SCRIPTS / "python" / script)])) == {}


@pytest.mark.parametrize(
    ("requirement", "message"),
    [("KC-TLS-034", "HELLO_REQUEST"), ("KC-TLS-035", "HELLO_REQUEST"), ("KC-TLS-036", "KEY_UPDATE")],
)
def test_another_handshake_is_requested(requirement: str, message: str) -> None:
    received: list[str] = []
    context = ssl.create_default_context(cafile=str(AUTHORITY))
    context._msg_callback = lambda _socket, direction, _version, _content, kind, _data: (
        received.append(kind.name) if direction == "read" else None
    )
    (one,) = [each for each in load() if each.id == requirement]
    with ScriptedServer(one.store(), TIMEOUT, one.entry) as server:
        server.arm(one.fault)
        plain = socket.create_connection(("127.0.0.1", server.port), 5)
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
            received.clear()
            connection.sendall(b"get first\r\n")
            # The end of the connection without close_notify is what one of them demands.
            with suppress(ssl.SSLError, ConnectionError):
                connection.recv(1)
    assert message in received


def test_a_missing_library_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes.util, "find_library", lambda _: None)
    openssl.cache_clear()
    with pytest.raises(KvrefError, match="apt-get install libssl3"):
        judged([str(SMALL), "none"], "KC-TLS-036")


def test_pymemcache_reads_bytes_that_no_request_belongs_to() -> None:
    one = judged([str(SCRIPTS / "python" / "use_pymemcache.py")])
    found = {key: each.why for key, each in one.verdicts.items() if each.outcome == FAILS}
    # pymemcache drops what follows a reply in the same read, so that it depends on the time between two replies whether it
    # is one reply behind after a surplus miss.
    found.pop("KC-SURPLUS-020", None)
    behind = ("KC-SURPLUS-014", "KC-SURPLUS-015", "KC-SURPLUS-016", "KC-TLS-040")
    assert found == dict.fromkeys(behind, 'get second returns "wrong"')


def test_a_call_that_a_client_lacks_is_unsupported() -> None:
    verdict = judged([str(SCRIPTS / "python" / "use_pymemcache.py")], "KC-BASE-018").verdicts["KC-BASE-018"]
    assert (verdict.outcome, verdict.why) == (UNSUPPORTED, "no call gat")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("import sys; sys.exit('broken')", "broken"),
        ("print('hello')", "no JSON"),
        ("print('[]')", "no JSON object"),
        ("print('{}')", "client"),
    ],
)
def test_an_adapter_that_does_not_start_is_an_error(script: str, why: str) -> None:
    with pytest.raises(AdapterError, match=why):
        Adapter([sys.executable, "-c", script], "text", TIMEOUT)


def test_an_adapter_that_ends_fails_the_requirement() -> None:
    head = '{"client": "x", "version": "1", "runtime": "y"}'
    verdict = judged(["-c", f"print('{head}', flush=True); input()"], "KC-BASE-001").verdicts["KC-BASE-001"]
    assert verdict.outcome == FAILS
    assert "the process ended" in verdict.why
