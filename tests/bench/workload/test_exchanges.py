"""What the sessions of a worker send, before any server sees it."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, starmap
from typing import Any

import pytest

from kvref_bench.errors import BenchError
from kvref_bench.load.records import Exchange
from kvref_bench.load.work import Keys, Values, Work
from kvref_bench.workload import plan_of
from kvref_bench.workload.binary import Binary
from kvref_bench.workload.commands import Item
from kvref_bench.workload.text import Text

from .player import task

WORK = Work(Keys(500, length=12), Values((10, 20)), {"get": 1.0}, pool=64)
OWN = replace(WORK, keys=replace(WORK.keys, distribution="own"), verbs={"set": 1.0})


def sent(work: Work, amount: int, session: int = 0, worker: int = 0, workers: int = 1) -> list[Exchange]:
    plan = plan_of(task(work, worker=worker, workers=workers))
    return list(starmap(Exchange, islice(plan.exchanges(session), amount)))


def test_the_same_task_sends_the_same() -> None:
    assert sent(WORK, 100) == sent(WORK, 100)
    assert sent(WORK, 100) != sent(replace(WORK, seed=1), 100)
    assert sent(WORK, 100) != sent(WORK, 100, worker=1, workers=2)


def test_sessions_repeat_one_pool_and_begin_apart() -> None:
    work = replace(WORK, sessions=4)
    first = sent(work, 64)
    assert sent(work, 192) == first * 3
    for session in range(1, 4):
        mine = sent(work, 64, session)
        assert mine == first[session * 16 :] + first[: session * 16]
        assert mine[0] is not first[0]


def test_a_pool_is_made_of_keys_not_of_exchanges() -> None:
    exchanges = sent(replace(WORK, depth=4, multiget=2), 16)
    assert exchanges[:8] == exchanges[8:]
    assert exchanges[0] != exchanges[1]
    assert {len(each.kinds) for each in exchanges} == {8}


@pytest.mark.parametrize("protocol", ["text", "binary"])
def test_an_expected_reply_is_complete_and_no_part_of_it_is(protocol: Any) -> None:
    verbs = dict.fromkeys(("get", "set", "incr", "decr", "delete", "touch"), 1.0)
    numbers = replace(WORK, verbs=verbs, depth=3, protocol=protocol, values=replace(WORK.values, form="number"))
    plan = plan_of(task(numbers))
    for each in starmap(Exchange, islice(plan.exchanges(0), 20)):
        assert plan.reader.read(each, each.reply) is not None
        assert not any(plan.reader.read(each, each.reply[:end]) for end in range(len(each.reply)))


def test_operations_are_commands() -> None:
    assert len(sent(replace(WORK, operations=1000, depth=10), 10**6)) == 100
    assert len(sent(replace(OWN, operations=300, sessions=2), 10**6)) == 300


def test_own_keys_are_the_same_whether_made_before_or_while_the_clock_runs() -> None:
    ahead = sent(replace(OWN, operations=90, pool=1000), 100)
    assert ahead == sent(replace(OWN, operations=90, pool=1), 100) == sent(replace(OWN, pool=40), 90)
    assert len(set(ahead)) == 90


def test_own_keys_of_workers_do_not_meet() -> None:
    work = replace(OWN, operations=40, sessions=5)
    mine = [each for worker in range(2) for session in range(3 - worker) for each in sent(work, 99, session, worker, 2)]
    assert len(set(mine)) == len(mine) == 200


def test_sessions_apart_repeat_a_pool_of_their_own() -> None:
    work = replace(WORK, keys=replace(WORK.keys, apart=True), sessions=4)
    mine = [sent(work, 64, session, worker, 2) for worker in range(2) for session in range(2)]
    assert all(each[:32] == each[32:] for each in mine)
    assert len({each for one in mine for each in one}) == sum(len(set(one)) for one in mine)


def test_verbs_are_drawn_by_weight() -> None:
    plan = plan_of(task(replace(WORK, verbs={"get": 3.0, "set": 1.0}, pool=20_000)))
    verbs = [plan.kinds[kinds[0]].verb for _, _, kinds in islice(plan.exchanges(0), 20_000)]
    assert abs(verbs.count("set") / 20_000 - 0.25) < 0.01


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"verbs": {}}, "verbs = {}"),
        ({"verbs": {"get": 0.0}}, "a weight above 0"),
        ({"verbs": {"grab": 1.0}}, "grab is not a verb; possible: get, gets"),
        ({"verbs": {"set": 1.0}, "multiget": 2}, "multiget = 2 without get"),
        ({"operations": 10, "depth": 3}, "operations = 10 is not a multiple of depth = 3"),
        ({"verbs": {"incr": 1.0}}, "form = 'number'"),
        ({"verbs": {"incr": 1.0, "append": 1.0}, "values": Values(form="number")}, "append makes of a number"),
        ({"keys": Keys(9, distribution="own", missing=0.1)}, "missing = 0.1 with the distribution own"),
        ({"keys": Keys(9, distribution="own", apart=True)}, "apart with the distribution own"),
        ({"keys": Keys(9, apart=True), "sessions": 10}, "apart: 10 sessions have no 9 keys to part"),
        ({"keys": Keys(9, distribution="file")}, "the two belong together"),
        ({"keys": Keys(9, file="keys.txt")}, "the two belong together"),
        ({"route": "switch"}, "needs the name of a mapping"),
        ({"route": "each", "mapping": "m", "verbs": {"delete": 1.0}}, "delete takes no @@mapping"),
        ({"route": "bind", "mapping": "m", "protocol": "binary"}, "choose switch"),
        ({"route": "each", "mapping": "m", "keys": Keys(9, length=250)}, "keys of 254 bytes"),
        ({"tls": "cert.pem", "route": "bind", "mapping": "m"}, "sends nothing before its handshake"),
        ({"tls": "cert.pem", "login": "user:password"}, "sends nothing before its handshake"),
        ({"protocol": "mysql"}, "statements has none for get"),
        ({"protocol": "mysql", "statements": {"get": "SELECT :key"}, "route": "bind"}, "is of memcached"),
    ],
)
def test_what_does_not_go_together_is_reported(change: dict[str, Any], words: str) -> None:
    with pytest.raises(BenchError) as error:
        plan_of(task(replace(WORK, **change)))
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("codec", "expiry"), [(Text(3600), b" 0 3600 5\r\n"), (Binary(3600), b"\0\0\0\0\0\0\x0e\x10key")]
)
def test_storage_commands_have_the_expiry(codec: Text | Binary, expiry: bytes) -> None:
    item = Item(b"key", b"value", there=True)
    for verb in ("set", "add", "replace"):
        assert expiry in codec.ask(verb, [item])[0]
    assert expiry not in codec.ask("get", [item])[0]


def test_nobody_listens() -> None:
    with pytest.raises(BenchError, match=r"no connection to 127\.0\.0\.1:1: .*start the endpoint"):
        plan_of(task(WORK)).connect()
