"""The purpose of the InnoDB store: a server loses the plugin, its applications go on with kvref on the same tables."""

from __future__ import annotations

from contextlib import closing

import pytest
from helpers.live import missing_skips
from helpers.serving import ask, serving
from helpers.waiting import until_listening
from pymemcache.client.base import Client

from kvref_testbed import targets
from kvref_testbed.targets.servers import PluginServer

pytestmark = [pytest.mark.live, pytest.mark.nightly]
INSTALL = "INSTALL PLUGIN daemon_memcached SONAME 'libmemcached.so'"
UNINSTALL = "UNINSTALL PLUGIN daemon_memcached"
TABLES = (
    "CREATE TABLE test.shop (id INT PRIMARY KEY, name VARCHAR(20), price INT, f INT, c BIGINT UNSIGNED, e INT)",
    "INSERT INTO test.shop VALUES (1, 'pen', 120, 0, 0, 0), (2, 'ink', 700, 0, 0, 0)",
    "INSERT INTO innodb_memcache.containers VALUES"
    " ('shop', 'test', 'shop', 'id', 'name|price', 'f', 'c', 'e', 'PRIMARY')",
)
READS = (
    b"get AA page:1 hits missing\r\n", b"gets page:1\r\n", b"get @@shop.1 2 3\r\n", b"get @>=1@<=2\r\n",
    b"bind shop\r\nget 2\r\nbind aaa\r\nget page:1\r\n", b"get @@aaa\r\n", b"get @>=h\r\n",
)  # fmt: skip


def execute(server: PluginServer, *statements: str) -> None:
    with closing(server.connect(30.0)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def use(client: Client, visit: str) -> list[object]:
    return [
        client.set("page:1", f"<p>{visit}</p>".encode(), flags=7),
        client.set("hits", b"41"),
        client.incr("hits", 1),
        client.get("page:1"),
        client.get_many(["AA", "hits"]),
        client.set("@@shop.3", f"{visit}|99".encode()),
        client.get("2"),
        client.add("3", b"again|1"),
        client.append("@@aaa.page:1", b"!"),
        client.delete("hits"),
        client.set("hits", b"5"),
    ]


def test_the_same_client_code_on_the_same_rows() -> None:
    with missing_skips():
        block = targets.plugin_server("mysql-8.0-plugin")
        server = block.__enter__()
    try:
        server.boot(())
        execute(server, *server.config_script(), *TABLES, INSTALL)
        with until_listening(server.address) as raw:
            with closing(Client(server.address, default_noreply=False)) as client:
                by_plugin = use(client, "before")
            read_of_plugin = [ask(raw, read) for read in READS]
        execute(server, UNINSTALL)
        server.stop()
        server.start()
        with closing(server.connect(30.0)) as connection:
            dsn = f"mysql://root@localhost/?unix_socket={connection.unix_socket}"  # type: ignore[attr-defined]
        with serving(dsn, "--profile", "mysql-8.0") as served:
            with served.connect() as raw:
                assert [ask(raw, read) for read in READS] == read_of_plugin
            with closing(Client(("127.0.0.1", served.port), default_noreply=False)) as client:
                assert client.get("@@shop.3") == b"before|99"
                assert client.delete("3")
                assert client.get("@@aaa.AA") == b"HELLO, HELLO"
                assert use(client, "before") == by_plugin
    finally:
        block.__exit__(None, None, None)
