"""pylibmc, that is libmemcached, with its pickling and compression."""

import pylibmc
from contract import Calls, main


def connect(host, port, protocol, timeout):
    behaviors = {
        "cas": True,
        "tcp_nodelay": True,
        "connect_timeout": int(timeout * 1000),
        "_poll_timeout": int(timeout * 1000),
        "receive_timeout": int(timeout * 1_000_000),
        "send_timeout": int(timeout * 1_000_000),
        "retry_timeout": 1,
    }
    client = pylibmc.Client([f"{host}:{port}"], binary=protocol == "binary", behaviors=behaviors)

    def replace(key, value):
        try:
            return client.replace(key, value)
        except pylibmc.NotFound:  # its way to say so, in binary
            return False

    return Calls(
        set=lambda key, value, ttl=0: client.set(key, value, time=ttl, min_compress_len=1000),
        set_number=client.set,
        get=client.get,
        raw_get=client.get,
        delete=client.delete,
        get_multi=client.get_multi,
        add=client.add,
        replace=replace,
        append=client.append,
        prepend=client.prepend,
        gets=client.gets,
        cas=client.cas,
        incr=client.incr,
        decr=client.decr,
        touch=client.touch,
    )


main("pylibmc", connect)
