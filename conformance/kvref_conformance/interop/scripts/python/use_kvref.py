"""kvref.client.MappedClient: pymemcache with mappings; values are bytes."""

from contract import Calls, main

from kvref.client import MappedClient


def connect(host, port, _protocol, timeout):
    client = MappedClient((host, port), timeout=timeout, connect_timeout=timeout)
    return Calls(
        set=lambda key, value, ttl=0: client.set(key, value, expire=ttl),
        get=client.get,
        delete=client.delete,
        get_multi=client.get_many,
        add=client.add,
        replace=client.replace,
        append=client.append,
        prepend=client.prepend,
        gets=client.gets,
        cas=client.cas,
        incr=client.incr,
        decr=client.decr,
        touch=client.touch,
        gat=client.gat,
    )


if __name__ == "__main__":
    main("kvref", connect)
