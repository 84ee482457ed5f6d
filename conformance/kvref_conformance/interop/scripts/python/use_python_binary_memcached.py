"""python-binary-memcached, with its pickling and compression."""

import bmemcached
from contract import Calls, main


def connect(host, port, _protocol, timeout):
    client = bmemcached.Client([f"{host}:{port}"], socket_timeout=timeout)
    return Calls(
        set=lambda key, value, ttl=0: client.set(key, value, time=ttl, compress_level=6),
        set_number=lambda key, number: client.set(key, str(number)),
        get=client.get,
        raw_get=client.get,
        delete=client.delete,
        get_multi=client.get_multi,
        add=client.add,
        replace=client.replace,
        gets=client.gets,
        cas=client.cas,
        incr=client.incr,
        decr=client.decr,
        incr_from=lambda key, by, start: client.incr(key, by, default=start),
    )


main("python-binary-memcached", connect)
