"""aiomcache: bytes as they are."""

import asyncio

import aiomcache
from contract import Calls, main, text, trusting


def connect(host, port, _protocol, timeout, ca=None):
    loop = asyncio.new_event_loop()
    # One connection: a mapping belongs to the connection that it was chosen on.
    client = aiomcache.Client(host, port, pool_size=1, conn_args={"ssl": trusting(ca)} if ca else None)

    def wait(call, *arguments):
        return loop.run_until_complete(asyncio.wait_for(call(*arguments), timeout))

    def code(value):
        return value.encode() if isinstance(value, str) else value

    def plain(call):
        return lambda key, *rest: text(wait(call, key.encode(), *map(code, rest)))

    def gets(key):
        value, number = wait(client.gets, key.encode())
        return text(value), number

    def get_multi(keys):
        return dict(zip(keys, map(text, wait(client.multi_get, *(key.encode() for key in keys))), strict=True))

    return Calls(
        number=b"42",
        long=b"kvref " * 700,
        structure=bytes(range(256)),
        set=plain(client.set),
        set_number=lambda key, number: wait(client.set, key.encode(), b"%d" % number),
        get=plain(client.get),
        raw_get=lambda key: wait(client.get, key.encode()),
        delete=plain(client.delete),
        get_multi=get_multi,
        add=plain(client.add),
        replace=plain(client.replace),
        append=plain(client.append),
        prepend=plain(client.prepend),
        gets=gets,
        cas=lambda key, value, number: wait(client.cas, key.encode(), value.encode(), number),
        incr=plain(client.incr),
        decr=plain(client.decr),
        touch=plain(client.touch),
    )


main("aiomcache", connect)
