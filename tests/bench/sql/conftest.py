"""SQL servers with a small table of text keys and one of numbers."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import pytest
from helpers.live import MYSQL_8, sql_server_or_skip

from kvref_bench import peers
from kvref_bench.load.work import Keys, Values
from kvref_bench.peers import PeerSpec
from kvref_bench.scenario.records import Table
from kvref_bench.sql import login

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.peers import OpenPeer
    from kvref_testbed.targets import SQLServer

SET = """
BEGIN
  DECLARE there INT DEFAULT 0;
  SELECT COUNT(*) INTO there FROM words WHERE k = the_key;
  IF there = 0 THEN INSERT INTO words (k, v) VALUES (the_key, the_value);
  ELSE UPDATE words SET v = the_value, cas = cas + 1 WHERE k = the_key; END IF;
END"""
WORDS = Table(
    "words", "words", Keys(200, "text", 20), Values((0, 300)),
    procedures={"words_set": SET, "words_get": "SELECT v FROM words WHERE k = the_key"},
)  # fmt: skip
NUMBERS = Table("numbers", "numbers", Keys(200, "int"), Values((100, 100)), extras=False)


class Sut(NamedTuple):
    """A server with both tables."""

    server: SQLServer
    peer: OpenPeer

    def run(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement in the benchmark's database."""
        with closing(login.parse(self.server.dsn).connect("kvref_bench")) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())


@pytest.fixture(scope="package", params=[MYSQL_8, "mariadb"])
def booted(request: pytest.FixtureRequest) -> Iterator[Sut]:
    """Start each server once."""
    with sql_server_or_skip(request.param) as server, peers.open(PeerSpec(sql=server.dsn)) as peer:
        yield Sut(server, peer)


@pytest.fixture
def sut(booted: Sut) -> Sut:
    """Fill both tables again."""
    booted.peer.prepare(WORDS)
    booted.peer.prepare(NUMBERS)
    return booted
