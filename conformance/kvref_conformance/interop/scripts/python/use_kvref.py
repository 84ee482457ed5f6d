"""kvref.client.MappedClient: pymemcache with mappings; values are bytes."""

from contract import Calls, alike, main

from kvref.client import MappedClient


def connect(host, port, _protocol, timeout):
    client = MappedClient((host, port), timeout=timeout, connect_timeout=timeout)
    return Calls(
        set=lambda key, value, ttl=0: client.set(key, value, expire=ttl),
        **alike(client),
        get_multi=client.get_many,
        gat=client.gat,
    )


if __name__ == "__main__":
    main("kvref", connect)
