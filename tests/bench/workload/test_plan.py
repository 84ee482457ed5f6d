"""Plans against real endpoints: native memcached, kvref over SQLite, the plugin."""

from __future__ import annotations

import struct
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from helpers.live import missing_skips

from kvref_bench import peers
from kvref_bench.errors import BenchError
from kvref_bench.load.work import Keys, Values, Work
from kvref_bench.scenario.records import Table
from kvref_bench.workload import plan_of
from kvref_bench.workload.keys import table_keys
from kvref_testbed.targets import QUIET

from .player import Played, play, task

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_bench.load.records import Exchange
    from kvref_bench.load.work import Protocol, Route

pytestmark = [pytest.mark.live, pytest.mark.nightly]

TEXTS = Table("texts", "default", Keys(60, length=12), Values((0, 600)))
NUMBERS = Table("numbers", "default", Keys(60, shape="int"), Values((1, 6), form="number"))
SHOP = replace(TEXTS, name="shop", mapping="shop")
BOTH: tuple[Protocol, ...] = ("text", "binary")
ROUTES: list[tuple[Route, Protocol]] = [
    ("each", "text"),
    ("each", "binary"),
    ("switch", "text"),
    ("switch", "binary"),
    ("bind", "text"),
]


@pytest.fixture(scope="module", params=["memcached", "kvref-sqlite", "mysql-8.0-plugin"])
def peer(request: pytest.FixtureRequest) -> Iterator[peers.OpenPeer]:
    with opened(request.param) as peer:
        yield peer


@contextmanager
def opened(name: str) -> Iterator[peers.OpenPeer]:
    with ExitStack() as stack:
        with missing_skips():
            peer = stack.enter_context(peers.open(peers.PeerSpec(endpoint=name), QUIET))
        yield peer


def address(peer: peers.OpenPeer) -> str:
    assert peer.address is not None
    return peer.address


def work(table: Table, verbs: Sequence[str], protocol: Protocol = "text", missing: float = 0.3) -> Work:
    keys = replace(table.keys, missing=missing)
    return Work(keys, table.values, dict.fromkeys(verbs, 1.0), protocol, mapping=table.mapping, pool=600)


def test_every_verb_has_the_outcomes_that_a_model_expects(peer: peers.OpenPeer) -> None:
    verbs = ("get", "gets", "set", "add", "replace", "append", "prepend", "delete")
    peer.prepare(TEXTS)
    there = set(table_keys(TEXTS.keys))
    for protocol in BOTH:
        played = play(work(TEXTS, verbs, protocol), address(peer), 300)
        assert played.unexpected == []
        assert outcomes(played) == modelled(played, there, protocol)
        assert {each.partition("/")[0] for each in played.counts} == set(verbs)


def test_counting_verbs_have_the_outcomes_that_a_model_expects(peer: peers.OpenPeer) -> None:
    peer.prepare(NUMBERS)
    there = set(table_keys(NUMBERS.keys))
    known = play(replace(work(NUMBERS, ["get", "set"], missing=0), depth=4), address(peer), 100)
    assert known.equal == 100
    assert known.counts.keys() == {"get/hit", "set/stored"}
    for protocol in BOTH:
        played = play(work(NUMBERS, ("get", "set", "incr", "decr", "delete"), protocol), address(peer), 200)
        assert played.unexpected == []
        assert outcomes(played) == modelled(played, there, protocol)
        assert {"incr/counted", "incr/not_found", "decr/counted", "decr/not_found"} <= played.counts.keys()


def test_reads(peer: peers.OpenPeer) -> None:
    peer.prepare(TEXTS)
    for depth, multiget in ((1, 1), (8, 1), (1, 5), (4, 3)):
        drawn = replace(work(TEXTS, ["get"]), depth=depth, multiget=multiget)
        played = play(drawn, address(peer), 60)
        assert played.equal == 60
        assert sum(played.counts.values()) == 60 * depth * multiget
        binary = play(replace(drawn, protocol="binary"), address(peer), 60)
        assert binary.unexpected == []
        assert binary.counts == played.counts
    for protocol in BOTH:
        other_values(address(peer), protocol)
        touches(peer, protocol)


def other_values(where: str, protocol: Protocol) -> None:
    drawn = work(replace(TEXTS, values=Values((9, 9))), ["get"], protocol, missing=0)
    played = play(drawn, where, 20)
    assert played.counts == {"get/error": 20}
    assert len(played.unexpected) == 20


def touches(peer: peers.OpenPeer, protocol: Protocol) -> None:
    played = play(work(TEXTS, ["touch"], protocol), address(peer), 50)
    if peer.peer.kind == "plugin":  # it has no such command
        assert played.counts == {"touch/error": 50}
        assert len(played.unexpected) == 50
    else:
        assert played.unexpected == []
        assert played.counts.keys() == {"touch/touched", "touch/not_found"}
        assert played.equal == 50 or protocol == "binary"


def test_routes_lead_to_the_mapping(peer: peers.OpenPeer) -> None:
    peer.prepare(SHOP)
    for route, protocol in ROUTES:
        drawn = replace(work(SHOP, ["get", "set"], protocol, missing=0), route=route)
        if peer.peer.kind == "memcached":
            # It takes @@shop.KEY for a key, and has none such.
            if route == "each":
                assert play(replace(drawn, verbs={"get": 1.0}), address(peer), 50).counts.keys() == {"get/miss"}
            else:
                with pytest.raises(BenchError, match="does not know the mapping 'shop'"):
                    plan_of(task(drawn, address(peer))).connect()
            continue
        played = play(drawn, address(peer), 50)
        assert played.unexpected == []
        assert played.counts.keys() == {"get/hit", "set/stored"}
        assert played.equal == 50 or protocol == "binary"
        assert all((b"@@shop." in exchange.request) == (route == "each") for exchange, _ in played.exchanges)
        if route != "each":
            with pytest.raises(BenchError, match="does not know the mapping 'nowhere'"):
                plan_of(task(replace(drawn, mapping="nowhere"), address(peer))).connect()


def test_own_keys_are_new_for_every_session() -> None:
    with opened("memcached") as peer:
        drawn = replace(work(TEXTS, ["add"], missing=0), sessions=3, operations=70, pool=60)
        drawn = replace(drawn, keys=replace(drawn.keys, distribution="own"))
        for session in range(3):
            played = play(drawn, address(peer), 1000, session)
            assert played.counts == {"add/stored": 70}
            assert played.equal == 70


def outcomes(played: Played) -> list[tuple[str, str]]:
    return [(kind.verb, kind.outcome) for _, kinds in played.exchanges for kind in kinds]


def modelled(played: Played, there: set[bytes], protocol: Protocol) -> list[tuple[str, str]]:
    """Say what memcached's own rules make of the same requests."""
    expected = []
    for exchange, [kind] in played.exchanges:
        name = name_of(exchange, protocol)
        present = name in there
        answers = {
            "get": ("hit", "miss"),
            "gets": ("hit", "miss"),
            "set": ("stored", "stored"),
            "add": ("not_stored", "stored"),
            "incr": ("counted", "not_found"),
            "decr": ("counted", "not_found"),
            "delete": ("deleted", "not_found"),
        }
        expected.append((kind.verb, answers.get(kind.verb, ("stored", "not_stored"))[not present]))
        if kind.verb in ("set", "add"):
            there.add(name)
        elif kind.verb == "delete":
            there.discard(name)
    return expected


def name_of(exchange: Exchange, protocol: Protocol) -> bytes:
    if protocol == "text":
        return exchange.request.split()[1]
    length, extras = struct.unpack_from(">2xHB", exchange.request)
    return exchange.request[24 + extras : 24 + extras + length]
