"""The scripted server waits for the client, so that the load of the machine decides no verdict."""

from __future__ import annotations

import socket
import time

import pytest

from kvref_conformance.clients.faults import Fault
from kvref_conformance.clients.requirements import load
from kvref_conformance.clients.server import ScriptedServer
from kvref_conformance.clients.unread import unread_at_client, unread_at_server

TIMEOUT = 4.0
REPLY = b"VALUE first 0 3\r\none\r\nEND\r\n"


def connected(server: ScriptedServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), 5)


def test_bytes_count_until_they_are_read() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname(), 5) as client,
    ):
        server, _ = listener.accept()
        with server:
            server.sendall(b"12345")
            client.sendall(b"123")
            assert (unread_at_client(server), unread_at_server(server)) == (5, 3)
            client.recv(2)
            server.recv(3)
            assert (unread_at_client(server), unread_at_server(server)) == (3, 0)
            client.close()
            assert unread_at_client(server) == 0


@pytest.mark.parametrize("lines", [1, 40])
def test_every_request_is_replied_to_once_the_server_is_settled(lines: int) -> None:
    with ScriptedServer(load()[0].store(), TIMEOUT) as server:
        for _ in range(20):
            with connected(server) as client:
                client.sendall(b"get first\r\n" * lines)
                assert server.settle()
                client.settimeout(0)
                assert client.recv(1 << 16) == REPLY * lines


def test_a_delayed_reply_is_not_waited_for() -> None:
    with ScriptedServer(load()[0].store(), TIMEOUT) as server, connected(server) as client:
        server.arm(Fault(wait=10))
        client.sendall(b"get first\r\n")
        assert server.settle()
        client.settimeout(0)
        with pytest.raises(BlockingIOError):
            client.recv(1)


def test_each_segment_is_read_before_the_next_is_sent() -> None:
    with ScriptedServer(load()[0].store(), TIMEOUT) as server, connected(server) as client:
        server.arm(Fault(split=1))
        client.sendall(b"get first\r\n")
        found = []
        while b"".join(found) != REPLY:
            time.sleep(0.005)
            found.append(client.recv(1 << 16))
        assert {len(each) for each in found} == {1}


def test_a_quiet_command_in_the_segment_of_another_has_a_reply_of_its_own() -> None:
    with ScriptedServer(load()[0].store(), TIMEOUT) as server, connected(server) as client:
        server.arm(Fault(on="set", text="ERROR\r\n", at_once=True))
        client.sendall(b"set first 0 0 3 noreply\r\none\r\nget first\r\n")
        assert server.settle()
        client.settimeout(0)
        assert client.recv(1 << 16) == b"ERROR\r\n" + REPLY
