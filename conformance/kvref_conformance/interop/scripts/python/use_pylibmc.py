"""pylibmc, that is libmemcached, with its pickling and compression."""

import os
import sysconfig

# The wheel has a libsasl2 that looks for mechanisms, when it is imported, where Debian has none.
os.environ.setdefault("SASL_PATH", f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}/sasl2")

import pylibmc
from contract import Calls, CannotError, main


def connect(host, port, protocol, timeout, credentials=()):
    if credentials and protocol != "binary":
        raise CannotError("credentials need the binary protocol")
    behaviors = {
        "cas": True,
        "tcp_nodelay": True,
        "connect_timeout": int(timeout * 1000),
        "_poll_timeout": int(timeout * 1000),
        "receive_timeout": int(timeout * 1_000_000),
        "send_timeout": int(timeout * 1_000_000),
        "retry_timeout": 1,
    }
    named = dict(zip(("username", "password"), credentials, strict=False))
    client = pylibmc.Client([f"{host}:{port}"], binary=protocol == "binary", behaviors=behaviors, **named)

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
