"""emcache: bytes as they are; refusals are exceptions."""

import asyncio

import emcache
from contract import Calls, main


def connect(host, port, _protocol, timeout, ca=None, credentials=(None, None)):
    loop = asyncio.new_event_loop()
    # One connection: a mapping belongs to the connection that it was chosen on.
    client = loop.run_until_complete(
        emcache.create_client(
            [emcache.MemcachedHostAddress(host, port)],
            max_connections=1,
            timeout=timeout,
            connection_timeout=timeout,
            ssl=ca is not None,
            ssl_extra_ca=ca,
            username=credentials[0],
            password=credentials[1],
        )
    )

    def wait(call):
        return loop.run_until_complete(call)

    def value(item):
        return None if item is None else item.value.decode()

    def done(call):
        try:
            wait(call)
        except (emcache.NotFoundCommandError, emcache.NotStoredStorageCommandError):
            return False
        return True

    def code(each):
        return each.encode() if isinstance(each, str) else each

    def stored_or_not(call):
        return lambda key, each: done(call(key.encode(), code(each)))

    def gets(key):
        item = wait(client.gets(key.encode()))
        return value(item), item.cas

    def get_multi(keys):
        found = wait(client.get_many([key.encode() for key in keys]))
        return {key.decode(): value(item) for key, item in found.items()}

    return Calls(
        number=b"42",
        long=b"kvref " * 700,
        structure=bytes(range(256)),
        set=lambda key, each, ttl=0: done(client.set(key.encode(), code(each), exptime=ttl)),
        set_noreply=lambda key, each: done(client.set(key.encode(), code(each), noreply=True)),
        set_number=lambda key, number: done(client.set(key.encode(), b"%d" % number)),
        get=lambda key: value(wait(client.get(key.encode()))),
        raw_get=lambda key: wait(client.get(key.encode())).value,
        delete=lambda key: done(client.delete(key.encode())),
        get_multi=get_multi,
        add=stored_or_not(client.add),
        replace=stored_or_not(client.replace),
        append=stored_or_not(client.append),
        prepend=stored_or_not(client.prepend),
        gets=gets,
        cas=lambda key, each, number: done(client.cas(key.encode(), each.encode(), number)),
        incr=lambda key, by: wait(client.increment(key.encode(), by)),
        decr=lambda key, by: wait(client.decrement(key.encode(), by)),
        touch=stored_or_not(client.touch),
        gat=lambda key, ttl: value(wait(client.gat(ttl, key.encode()))),
    )


main("emcache", connect)
