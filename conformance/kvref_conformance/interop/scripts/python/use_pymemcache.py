"""pymemcache, with its serde that pickles and compresses."""

from contract import Calls, main, text
from pymemcache.client.base import Client
from pymemcache.serde import CompressedSerde


def connect(host, port, _protocol, timeout):
    client = Client((host, port), serde=CompressedSerde(), default_noreply=False, timeout=timeout)
    return Calls(
        set=lambda key, value, ttl=0: client.set(key, value, expire=ttl),
        set_number=client.set,
        get=client.get,
        raw_get=client.get,
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
        raw=lambda line: text(client.raw_command(line)),
    )


main("pymemcache", connect)
