"""python-memcached, with its pickling and compression."""

import memcache
from contract import Calls, main


def connect(host, port, _protocol, timeout):
    client = memcache.Client([f"{host}:{port}"], cache_cas=True, socket_timeout=timeout, dead_retry=1)

    def gets(key):
        value = client.gets(key)
        return value, client.cas_ids[key.encode()]

    def cas(key, value, number):
        client.cas_ids[key.encode()] = number
        return bool(client.cas(key, value))

    def raw(line):
        server = client.servers[0]
        server.send_cmd(line)
        return server.readline().decode()

    return Calls(
        set=lambda key, value, ttl=0: bool(client.set(key, value, time=ttl, min_compress_len=1000)),
        set_noreply=lambda key, value: bool(client.set(key, value, noreply=True)),
        set_number=client.set,
        get=client.get,
        raw_get=client.get,
        delete=lambda key: bool(client.delete(key)),
        get_multi=client.get_multi,
        add=lambda key, value: bool(client.add(key, value)),
        replace=lambda key, value: bool(client.replace(key, value)),
        append=lambda key, value: bool(client.append(key, value)),
        prepend=lambda key, value: bool(client.prepend(key, value)),
        gets=gets,
        cas=cas,
        incr=client.incr,
        decr=client.decr,
        touch=lambda key, ttl: bool(client.touch(key, ttl)),
        raw=raw,
    )


main("python-memcached", connect)
