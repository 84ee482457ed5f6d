"""The model gives to the requests of the literal cases no reply that a case does not allow.

A case goes on up to the first request that is beyond the model, and up to what is neither a request nor a disconnect.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack
from fnmatch import fnmatchcase
from itertools import count

import pytest

from kvref import profiles
from kvref.profiles import Profile
from kvref.specification import requirements
from kvref_conformance.case import Case
from kvref_conformance.cases import all_cases
from kvref_conformance.steps import By, Disconnect, Send
from kvref_conformance.traffic.modelled import BEYOND, ModelServer
from kvref_conformance.wire.frames import decode, encode
from kvref_conformance.wire.template import Names

pytestmark = pytest.mark.nightly
LASTS = 3600.0
# Sent behind each request; the reply is the end of what the request gets.
TEXT_END = b"set last 0 0 1 noreply\r\nx\r\nget last\r\n", b"VALUE last 0 1\r\nx\r\nEND\r\n"
BINARY_END = encode("noop opaque=4294967295"), encode("noop magic=129 opaque=4294967295")
# They depend on the columns of the table that is mapped.
OF_COLUMNS = (
    "*wider-than*",
    "*-no-text-*",
    "append-beyond-the-column",
    "key-in-another-letter-case",
    "*-in-another-case",
)
# Cases of which the model determines at least the first reply.
AT_LEAST = {"kvref": 500, "memcached": 450, "mysql-8.0": 320, "mysql-5.6": 300}


class Connections:
    """Connections of a case to a server of the model, by name; the stack closes them."""

    def __init__(self, server: ModelServer, stack: ExitStack) -> None:
        self._server, self._stack = server, stack
        self._open: dict[str, socket.socket] = {}

    def close(self, name: str) -> None:
        """Close a connection if it is open."""
        if name in self._open:
            self._open.pop(name).close()

    def ask(self, name: str, data: bytes, *, binary: bool) -> bytes:
        """Return the reply to requests; BEYOND if the model does not determine it."""
        if name not in self._open:
            self._open[name] = self._stack.enter_context(socket.create_connection(self._server.address, timeout=5))
        connection = self._open[name]
        sent, end = BINARY_END if binary else TEXT_END
        connection.sendall(data + sent)
        got = b""
        while not got.endswith(end):
            more = connection.recv(1 << 16)
            got += more
            if BEYOND in got or not more:
                return BEYOND
        return got.removesuffix(end)


def judge(case: Case, profile: Profile, server: ModelServer) -> tuple[int, str]:
    """Return how many replies of the model are as a case allows, and what is not."""
    with ExitStack() as stack:
        return _judge(case, profile, Connections(server, stack))


def _judge(case: Case, profile: Profile, on: Connections) -> tuple[int, str]:
    number = count()
    names = Names({"version": "none"}, lambda name: f"{case.id[:20]}{next(number)}{name}")
    judged = 0
    for step in case.steps:
        if isinstance(step, Disconnect):
            on.close(step.on)
            continue
        if not isinstance(step, Send) or step.quiet or step.closes:
            break
        text = "".join(map(names.render, step.packets))
        got = on.ask(step.on, encode(text) if step.binary else text.encode("latin-1"), binary=step.binary)
        received = decode(got) if step.binary else got.decode("latin-1")
        allowed = step.allow.of(profile) if isinstance(step.allow, By) else step.allow
        # A command that says noreply and is beyond the model has no reply either.
        if got == BEYOND or (not got and "" not in allowed):
            break
        if not any(names.match(each, received) for each in allowed):
            return judged, f"{case.id}: {text!r} -> {received!r}"
        judged += 1
    return judged, ""


@pytest.mark.parametrize("name", profiles.names())
def test_the_model_agrees_with_the_literal_cases(name: str) -> None:
    profile, catalogue = profiles.load(name), requirements.load()
    cases = [
        case
        for case in all_cases()
        if not case.needs_sql() and all(catalogue[each].applies_to(name) for each in case.requirements)
        if not any(fnmatchcase(case.id, glob) for glob in OF_COLUMNS)
    ]
    # What flush_all leaves is nothing for the cases behind it.
    with ModelServer(profile, LASTS) as server:
        found = [judge(case, profile, server) for case in cases if not case.flushes]
    for case in cases:
        if case.flushes:
            with ModelServer(profile, LASTS) as server:
                found.append(judge(case, profile, server))
    assert [wrong for _, wrong in found if wrong] == []
    assert sum(judged > 0 for judged, _ in found) >= AT_LEAST[name]
