"""pymemcache, with its serde that pickles and compresses."""

from contract import Calls, alike, main, text, trusting
from pymemcache.client.base import Client
from pymemcache.serde import CompressedSerde


def connect(host, port, _protocol, timeout, ca=None):
    client = Client(
        (host, port),
        serde=CompressedSerde(),
        default_noreply=False,
        timeout=timeout,
        connect_timeout=timeout,
        tls_context=trusting(ca),
    )
    return Calls(
        set=lambda key, value, ttl=0: client.set(key, value, expire=ttl),
        set_noreply=lambda key, value: client.set(key, value, noreply=True),
        set_number=client.set,
        **alike(client),
        raw_get=client.get,
        get_multi=client.get_many,
        raw=lambda line: text(client.raw_command(line)),
    )


main("pymemcache", connect)
