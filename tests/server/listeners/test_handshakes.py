"""Clients that connect to a TLS port without a handshake: they count as connections, and their time is limited."""

from __future__ import annotations

import ssl
from contextlib import ExitStack
from pathlib import Path

import pytest
from helpers.serving import Served, serving
from helpers.waiting import until
from server.listeners.talk import ENDED, answers, authority, held, trusting

pytestmark = pytest.mark.live

MOST = 8
OPENED = 4  # descriptors of files that the first get opens
ROW = b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"


def _descriptors(served: Served) -> int:
    pid = served.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(len(list(Path(f"/proc/{each}/fd").iterdir())) for each in [pid, *children])


@pytest.mark.parametrize("workers", ["1", "2"])
def test_handshakes_count_as_connections(tmp_path: Path, workers: str) -> None:
    cert, key = authority(tmp_path)
    options = ["--tls-cert", str(cert), "--tls-key", str(key), "--set", f"maxconns={MOST}", "--workers", workers]
    with serving(tmp_path / "x.sqlite", *options) as served, ExitStack() as stack:
        before = _descriptors(served) + OPENED
        silent = [stack.enter_context(served.connect()) for _ in range(10 * MOST)]
        assert [each.recv(100) for each in silent[MOST:]] == [b"ERROR Too many open connections\r\n"] * 9 * MOST
        until(lambda: _descriptors(served) <= before + MOST)  # the parent closes its copy when a worker has it
        with pytest.raises((ssl.SSLError, ConnectionError)):
            held(served.port, [b"get AA\r\n"], trusting(cert))
        for each in silent[: MOST // 2]:
            each.close()
        until(lambda: _descriptors(served) <= before + MOST // 2)
        reply = answers(served.port, [b"get AA\r\n", b"stats\r\n"], trusting(cert))
        assert reply[0] == ROW
        rejected = [row for row in reply[1].split(b"\r\n") if row.startswith(b"STAT rejected_conns ")]
        assert int(rejected[0].split()[2]) >= 9 * MOST


def test_a_handshake_has_a_time_limit(tmp_path: Path) -> None:
    cert, key = authority(tmp_path)
    with serving(tmp_path / "x.sqlite", "--tls-cert", str(cert), "--tls-key", str(key)) as served, ExitStack() as stack:
        assert answers(served.port, [b"get AA\r\n"], trusting(cert)) == [ROW]  # files are open from then on
        before = _descriptors(served)
        silent = [stack.enter_context(served.connect()) for _ in range(MOST)]
        assert [each.recv(100) for each in silent] == [b""] * MOST
        until(lambda: _descriptors(served) <= before)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_other_authorities_of_clients_at_a_reload(tmp_path: Path, workers: str) -> None:
    own, first, later = authority(tmp_path), authority(tmp_path, "first"), authority(tmp_path, "later")
    clients = tmp_path / "clients.pem"
    clients.write_bytes(first[0].read_bytes())
    options = ["--tls-cert", str(own[0]), "--tls-key", str(own[1]), "--tls-client-ca", str(clients)]

    def reply(shown: tuple[Path, Path]) -> bytes:
        try:
            return answers(served.port, [b"get AA\r\n"], trusting(own[0], shown))[0]
        except (ssl.SSLError, ConnectionError):
            return ENDED

    with serving(tmp_path / "x.sqlite", *options, "--workers", workers) as served:
        assert (reply(first), reply(later)) == (ROW, ENDED)
        clients.write_bytes(later[0].read_bytes())
        served.reload()
        assert (reply(first), reply(later)) == (ENDED, ROW)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_client_without_tls_is_counted_and_logged_once(tmp_path: Path, workers: str) -> None:
    cert, key = authority(tmp_path)
    options = ["--tls-cert", str(cert), "--tls-key", str(key), "--workers", workers]
    with serving(tmp_path / "x.sqlite", *options) as served:
        for sent in (b"get AA\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"version\r\n"):
            with served.connect() as client:
                client.sendall(sent)
                assert client.recv(100) == b""
        log = served.wait_for("plaintext request on a TLS port")
        (_, stats) = answers(served.port, [b"get AA\r\n", b"stats\r\n"], trusting(cert))
        assert b"STAT foreign_protocol_conns 3\r\n" in stats
        assert "closed a connection from 127.0.0.1: plaintext request on a TLS port" in log
    assert sum("plaintext request" in line for line in served.log) <= int(workers)
