"""python-binary-memcached, with its pickling and compression."""

import bmemcached
from contract import Calls, main, trusting


def connect(host, port, _protocol, timeout, ca=None, credentials=(None, None)):
    user, password = credentials
    client = bmemcached.Client([f"{host}:{port}"], user, password, socket_timeout=timeout, tls_context=trusting(ca))
    client.enable_retry_delay(enable=False)
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
