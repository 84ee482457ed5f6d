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


def test_own_keys_of_workers_do_not_meet() -> None:
    work = replace(OWN, operations=40, sessions=5)
    mine = [each for worker in range(2) for session in range(3 - worker) for each in sent(work, 99, session, worker, 2)]
    assert len(set(mine)) == len(mine) == 200


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


def test_nobody_listens() -> None:
    with pytest.raises(BenchError, match=r"no connection to 127\.0\.0\.1:1: .*start the endpoint"):
        plan_of(task(WORK)).connect()
