"""meta-memcache: meta commands only, with its pickling and compression."""

from contract import Calls, main
from meta_memcache import CacheClient, ServerAddress, SetMode, connection_pool_factory_builder


def connect(host, port, _protocol, timeout):
    pool = connection_pool_factory_builder(max_pool_size=1, recv_timeout=timeout)
    client = CacheClient.cache_client_from_servers([ServerAddress(host, port)], pool)

    def mode(which):
        return lambda key, value: client.set(key, value, 0, set_mode=which)

    def get_multi(keys):
        return {key.key: value for key, value in client.multi_get(keys).items()}

    return Calls(
        set=lambda key, value, ttl=0: client.set(key, value, ttl),
        set_noreply=lambda key, value: client.set(key, value, 0, no_reply=True),
        set_number=lambda key, number: client.set(key, number, 0),
        get=client.get,
        raw_get=client.get,
        delete=client.delete,
        get_multi=get_multi,
        add=mode(SetMode.ADD),
        replace=mode(SetMode.REPLACE),
        append=mode(SetMode.APPEND),
        prepend=mode(SetMode.PREPEND),
        gets=client.get_cas,
        cas=lambda key, value, number: client.set(key, value, 0, cas_token=number),
        incr=client.delta_and_get,
        decr=lambda key, by: client.delta_and_get(key, -by),
        incr_from=lambda key, by, start: client.delta_initialize_and_get(key, by, start, 0),
        touch=client.touch,
        gat=lambda key, ttl: client.get(key, touch_ttl=ttl),
    )


main("meta-memcache", connect)
