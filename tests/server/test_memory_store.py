"""`kvref serve --store memory://`: judged by the suite, and what it rejects."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import kvref
from helpers.serving import ask, serving

from kvref import profiles
from kvref.addresses import Address
from kvref.engine.dispatch import execute
from kvref.engine.session import Session
from kvref.protocol import commands as c
from kvref.protocol.replies import Item, Items, Reply
from kvref.server.listeners.listener import Listener
from kvref.server.server import Server
from kvref.server.settings import parse
from kvref.storage.memory import MemoryStore

# Requirements that the demo table is enough for.
CORE = ("KV-CORE-*", "KV-PARSE-*", "KV-FLAG-*", "KV-SET-*", "KV-ARITH-*", "KV-MGET-*", "KV-FLUSH-*", "KV-META-*")
MORE = ("KV-MG-*", "KV-MS-*", "KV-MD-*", "KV-MA-*", "KV-BINFRAME-*", "KV-BINGET-*", "KV-BINSTORE-*", "KV-BINARITH-*")


@pytest.mark.nightly
@pytest.mark.programs
def test_it_conforms(tmp_path: Path) -> None:
    patterns = [word for each in (*CORE, *MORE) for word in ("--only", each)]
    with serving("memory://") as served:
        address = f"127.0.0.1:{served.port}"
        judged = kvref("conform", address, "--allow-destructive", *patterns, "--report", tmp_path, timeout=200)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    holds = int(judged.stdout.partition(f"{address} as kvref: ")[2].partition(" holds")[0])
    assert holds > 400, judged.stdout


@pytest.mark.programs
def test_a_reload_keeps_its_rows_and_a_restart_does_not() -> None:
    with serving("memory://") as served, served.connect() as client:
        served.wait_for("store memory://: all rows are lost when the server stops")
        assert ask(client, b"set new 0 0 1\r\nx\r\n") == b"STORED\r\n"
        served.reload()
        assert ask(client, b"get new\r\n") == b"VALUE new 0 1\r\nx\r\nEND\r\n"
    with serving("memory://") as served, served.connect() as client:
        assert ask(client, b"get AA new\r\n") == b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"


@pytest.mark.programs
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["serve", "--store", "memory://", "--workers", "2"],
            "--workers 2: processes cannot share the rows of memory://: choose --workers 1",
        ),
        (
            ["serve", "--store", "memory://", "--set", "daemon_memcached_w_batch_size=2"],
            "store memory://: it commits each command alone: set daemon_memcached_r_batch_size",
        ),
        (["init", "--store", "memory://"], "store 'memory://': its tables would be lost when this command ends"),
        (["doctor", "--store", "memory://"], "store 'memory://': write sqlite:///PATH or mysql://USER@HOST/"),
    ],
)
def test_what_it_cannot_do_is_rejected(arguments: list[str], text: str) -> None:
    result = kvref(*arguments)
    assert result.returncode == 2
    assert text in result.stderr
    assert "Traceback" not in result.stderr


def test_another_store_that_answers_at_once_is_served_by_steps() -> None:
    names = {name: value for name, value in vars(MemoryStore).items() if name not in ("__dict__", "__weakref__")}
    other: Any = type("OtherStore", MemoryStore.__bases__, names | {"planned_rows": lambda _store, _bound: None})
    profile = profiles.load("kvref")
    replies: list[Reply | None] = []

    async def main() -> None:
        store = other("memory://", profile)
        server = Server(store, profile, lambda: parse([], None, profile), [Listener(Address("127.0.0.1", 0))])
        server.open()
        session, transaction = Session(server.shared), server.executor.begin()
        assert server.executor.planner(transaction, session, server.wire_rules) is None
        get = partial(execute, session, c.Get([b"AA"], with_cas=False), 0)
        replies.append(server.executor.run(transaction, get, replies.append))
        await server.executor.close()

    asyncio.run(main())
    assert replies == [Items([Item(b"AA", 8, b"HELLO, HELLO", 0)], with_cas=False)]
