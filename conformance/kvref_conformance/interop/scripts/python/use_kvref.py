"""kvref.client.MappedClient: pymemcache with mappings; values are bytes."""

from contract import Calls, alike, main, trusting

from kvref.client import MappedClient


def connect(host, port, _protocol, timeout, ca=None, credentials=None):
    client = MappedClient(
        (host, port),
        timeout=timeout,
        connect_timeout=timeout,
        tls_context=trusting(ca),
        credentials=credentials and tuple(credentials),
    )
    return Calls(
        set=lambda key, value, ttl=0: client.set(key, value, expire=ttl),
        set_noreply=lambda key, value: client.set(key, value, noreply=True),
        **alike(client),
        get_multi=client.get_many,
        gat=client.gat,
    )


if __name__ == "__main__":
    main("kvref", connect)
