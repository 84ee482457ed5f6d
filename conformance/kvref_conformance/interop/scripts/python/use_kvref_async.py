"""kvref.client.AsyncMappedClient; values are bytes."""

import asyncio

from contract import Calls, alike, main, trusting

from kvref.client import AsyncMappedClient


def connect(host, port, _protocol, timeout, ca=None, credentials=None):
    loop = asyncio.new_event_loop()

    async def make():
        return AsyncMappedClient(
            (host, port),
            timeout=timeout,
            connect_timeout=timeout,
            tls=trusting(ca),
            credentials=credentials and tuple(credentials),
        )

    client = loop.run_until_complete(make())

    def wait(call):
        return lambda *arguments, **named: loop.run_until_complete(call(*arguments, **named))

    return Calls(
        set=lambda key, value, ttl=0: wait(client.set)(key, value, ttl),
        **{name: wait(call) for name, call in alike(client).items()},
        set_noreply=lambda key, value: wait(client.set)(key, value, 0, noreply=True),
        get_multi=wait(client.get_many),
        gat=wait(client.gat),
    )


if __name__ == "__main__":
    main("kvref", connect)
