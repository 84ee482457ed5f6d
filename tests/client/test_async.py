"""Many requests in flight on one connection: order, cancellation, silence, loss."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import uvloop
from helpers.proxy import Proxy, proxy_to

from kvref.client import AsyncMappedClient, LinkError, ServerError, UnknownMappingError

pytestmark = pytest.mark.live
MANY = 2000


@pytest.fixture
def proxy(empty: Any) -> Iterator[Proxy]:
    host, port = empty.address.split(":")
    with proxy_to(host, int(port)) as between:
        yield between


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_thousands_in_flight(empty: Any, run: Any) -> None:
    async def main() -> None:
        async with AsyncMappedClient(empty.address) as client:
            other = client.at("bbb")
            await asyncio.gather(*[(client, other)[n % 2].set(f"k{n}", n) for n in range(MANY)])
            # Misses, hits and numbers side by side: an answer out of place would show.
            sent = [client.get(f"k{n}") if n % 3 else other.get(f"k{n}") for n in range(MANY)]
            got = await asyncio.gather(*sent)
            for n, value in enumerate(got):
                assert value == (b"%d" % n if (n % 3 == 0) == (n % 2 == 1) else None), n
            assert await asyncio.gather(*[client.incr("k0") for _ in range(300)]) == list(range(1, 301))

    run(main())
    assert empty.execute("SELECT COUNT(*) FROM {test}second") == [(MANY // 2,)]


def test_cancelled_calls_do_not_shift_answers(empty: Any) -> None:
    async def main() -> None:
        async with AsyncMappedClient(empty.address) as client:
            await client.set_many({f"k{n}": n for n in range(100)})
            for turns in range(12):
                tasks = [asyncio.ensure_future(client.get(f"k{n % 100}")) for n in range(1000)]
                for _ in range(turns):
                    await asyncio.sleep(0)
                for task in tasks[::3]:
                    task.cancel()
                got = await asyncio.gather(*tasks, return_exceptions=True)
                for n, value in enumerate(got):
                    assert value == b"%d" % (n % 100) or (n % 3 == 0 and isinstance(value, asyncio.CancelledError))
            # All commands used one connection: it is still bound to its mapping.
            assert await client.get("k7") == b"7"

    asyncio.run(main())


def test_one_who_gives_up_while_it_connects_takes_nobody_along(empty: Any) -> None:
    async def main() -> None:
        async with AsyncMappedClient(empty.address, mapping="aaa") as client:
            first = asyncio.ensure_future(client.get("AA"))
            second = asyncio.ensure_future(client.get("AA"))
            await asyncio.sleep(0)
            first.cancel()
            assert await second == b"HELLO, HELLO"

    asyncio.run(main())


def test_an_answer_after_its_caller_left_is_dropped(empty: Any) -> None:
    async def main() -> None:
        async with AsyncMappedClient(empty.address) as client:
            await client.set("other", "1")
            with empty.locked():
                waits = asyncio.ensure_future(client.set("AA", "late"))
                await asyncio.sleep(0.2)  # it waits at the endpoint by then; the plugins do not show who waits
                assert not waits.done()
                waits.cancel()
                behind = [asyncio.ensure_future(client.get(key)) for key in ("other", "AA", "none")]
            # 5.6.14 looks once a second for waits to give up.
            given_up = {b"HELLO, HELLO"} if empty.name == "mysql-5.6-plugin" else set()
            other, row, none = await asyncio.gather(*behind)
            assert (other, none) == (b"1", None)
            assert row in {b"late"} | given_up

    asyncio.run(main())


def test_silence_ends_the_connection(empty: Any, proxy: Proxy) -> None:
    async def main() -> None:
        async with AsyncMappedClient(f"127.0.0.1:{proxy.port}", timeout=0.4) as client:
            await client.set("k", "v")
            proxy.trap(b"get silent", "silence")
            with pytest.raises(LinkError, match=r"no answer within 0\.4 s"):
                await client.get("silent")
            # Its answer never comes: the connection is given up, not guessed about.
            assert await client.get("k") == b"v"
            for _ in range(20):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0):
                        await client.get("AA")
                assert await client.get("k") == b"v"

    asyncio.run(main())


@pytest.mark.parametrize("how", ["before", "after"])
def test_a_lost_connection_fails_what_is_in_flight_and_is_bound_again(empty: Any, proxy: Proxy, how: str) -> None:
    async def main() -> None:
        async with AsyncMappedClient(f"127.0.0.1:{proxy.port}", mapping="bbb") as client:
            await client.set_many({"a": 1, "b": 2})
            proxy.trap(b"get cut", how)
            got = await asyncio.gather(*[client.get(key) for key in ("a", "cut", "b")], return_exceptions=True)
            assert all(isinstance(each, LinkError) for each in got), got
            assert await asyncio.gather(*[client.get(key) for key in ("a", "cut", "b")]) == [b"1", None, b"2"]

    asyncio.run(main())
    assert empty.execute("SELECT COUNT(*) FROM {test}second") == [(2,)]


def test_nobody_waits_for_noreply_and_nothing_is_lost(empty: Any) -> None:
    async def main() -> None:
        client = AsyncMappedClient(empty.address, mapping="bbb")
        for n in range(500):
            assert await client.set(f"k{n}", n, noreply=True)
        # This write is rejected or truncated without a reply.
        await client.set("long", "x" * 1025, noreply=True)
        await client.delete("k0", noreply=True)
        assert (await client.get("k499"), await client.get("k0")) == (b"499", None)
        await client.set("last", "v", noreply=True)
        await client.close()
        assert empty.execute("SELECT c2 FROM {test}second WHERE c1 = 'last'") == [("v",)]
        assert await client.get("last") == b"v"
        await client.close()

    asyncio.run(main())


def test_an_unknown_mapping_is_reported_to_each_and_no_row_is_written(empty: Any) -> None:
    async def main() -> None:
        async with AsyncMappedClient(empty.address, mapping="nope") as client:
            got = await asyncio.gather(*[client.set(f"k{n}", n) for n in range(50)], return_exceptions=True)
            assert all(isinstance(each, UnknownMappingError) for each in got), got

    asyncio.run(main())
    assert empty.execute("SELECT COUNT(*) FROM {test}demo_test") == [(1,)]


def test_an_answer_that_cannot_be_read_ends_the_connection() -> None:
    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(b"END\r\nVALUE b 0 1\r\nabc\r\nEND\r\n")
            await reader.read()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            client = AsyncMappedClient(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", timeout=5)
            got = await asyncio.gather(client.get("a"), client.get("b"), return_exceptions=True)
            assert got[0] is None
            assert isinstance(got[1], ServerError), got
            await client.close()

    asyncio.run(main())
