"""kvref.client.AsyncMappedClient; values are bytes."""

import asyncio

from contract import Calls, alike, main

from kvref.client import AsyncMappedClient


def connect(host, port, _protocol, timeout):
    loop = asyncio.new_event_loop()

    async def make():
        return AsyncMappedClient((host, port), timeout=timeout, connect_timeout=timeout)

    client = loop.run_until_complete(make())

    def wait(call):
        return lambda *arguments: loop.run_until_complete(call(*arguments))

    return Calls(
        set=lambda key, value, ttl=0: wait(client.set)(key, value, ttl),
        **{name: wait(call) for name, call in alike(client).items()},
        get_multi=wait(client.get_many),
        gat=wait(client.gat),
    )


if __name__ == "__main__":
    main("kvref", connect)
