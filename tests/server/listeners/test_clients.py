"""kvref's own clients with users and TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.serving import Served, serving
from server.listeners.talk import authority, trusting

from kvref.client import AsyncMappedClient, CallError, MappedClient

pytestmark = pytest.mark.live

ALICE = ("alice", "a word")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return authority(tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def served(files: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "auth").write_text("alice:a word\n")
    options = ["--tls-cert", str(files[0]), "--tls-key", str(files[1]), "--auth-file", str(folder / "auth")]
    with serving(folder / "x.sqlite", *options) as running:
        yield running


@pytest.mark.parametrize("pool_size", [None, 2])
@pytest.mark.parametrize("mapping", [None, "aaa"])
def test_a_pymemcache_client(
    served: Served, files: tuple[Path, Path], pool_size: int | None, mapping: str | None
) -> None:
    context = trusting(files[0])
    with MappedClient(
        ("localhost", served.port), mapping=mapping, pool_size=pool_size, credentials=ALICE, tls_context=context
    ) as client:
        assert client.get("AA") == b"HELLO, HELLO"
        client.close()  # the next call reconnects
        assert client.get("@@aaa.AA") == b"HELLO, HELLO"


def test_an_asyncio_client(served: Served, files: tuple[Path, Path]) -> None:
    async def talk() -> bytes | None:
        where = f"localhost:{served.port}"
        async with AsyncMappedClient(where, mapping="aaa", credentials=ALICE, tls=trusting(files[0])) as client:
            assert await client.get("@@aaa.AA") == b"HELLO, HELLO"
            await client.close()
            return await client.get("AA")

    assert asyncio.run(talk()) == b"HELLO, HELLO"


@pytest.mark.parametrize(
    ("credentials", "text"), [(("alice", "wrong"), "authentication failure"), (None, "unauthenticated")]
)
def test_who_is_not_known(
    served: Served, files: tuple[Path, Path], credentials: tuple[str, str] | None, text: str
) -> None:
    async def talk() -> None:
        where = f"localhost:{served.port}"
        async with AsyncMappedClient(where, credentials=credentials, tls=trusting(files[0])) as client:
            await client.get("AA")

    context = trusting(files[0])
    with MappedClient(("localhost", served.port), credentials=credentials, tls_context=context) as client:
        for _ in range(2):
            with pytest.raises(CallError, match=text) as reported:
                client.get("AA")
            assert "wrong" not in str(reported.value)
    with pytest.raises(CallError, match=text) as reported:
        asyncio.run(talk())
    assert "wrong" not in str(reported.value)


@pytest.mark.parametrize("credentials", [("", "x"), ("a", ""), ("a b", "x"), ("a\n", "x"), ("a", "x" * 2047)])
def test_credentials_that_no_server_takes(credentials: tuple[str, str]) -> None:
    for make in (MappedClient, AsyncMappedClient):
        with pytest.raises(CallError, match="a user without blanks and a password, 2048 bytes at most"):
            make("127.0.0.1:1", credentials=credentials)
