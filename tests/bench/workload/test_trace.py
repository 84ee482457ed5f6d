"""Traces: requests in their order, values of their sizes, and errors that name line and fix."""

from __future__ import annotations

import gzip
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from kvref_bench.errors import BenchError
from kvref_bench.load.work import Keys, Values, Work
from kvref_bench.scenario import load
from kvref_bench.workload import plan_of
from kvref_bench.workload.trace import read_trace
from kvref_bench.workload.values import value

from .player import task

LINES = """\
0,alpha,5,10,1,get,0
0,beta,4,3,2,set,600
1,a,b,3,0,2,get,0
1,alpha,5,7,1,delete,0
2,beta,4,300,1,get,0
2,beta,4,3,1,incr,0
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(LINES)
    return path


def work(trace: Path, **changed: object) -> Work:
    found = read_trace(str(trace))
    keys = Keys(len(found.keys), distribution="trace", file=str(trace))
    values = Values((0, 300), trace=str(trace))
    made = Work(keys=keys, values=values, verbs={"get": 1, "set": 1, "delete": 1}, pool=5)
    return replace(made, **changed)  # type: ignore[arg-type]


def sent(work: Work, amount: int, worker: int = 0, workers: int = 1) -> list[bytes]:
    plan = plan_of(task(work, worker=worker, workers=workers))
    return [request for request, _, _ in islice(plan.exchanges(0), amount)]


def test_requests_are_sent_in_the_order_of_the_trace(trace: Path) -> None:
    beta = value(work(trace).values, b"beta")
    assert sent(work(trace), 6) == [
        b"get alpha\r\n",
        b"set beta 0 0 300\r\n%s\r\n" % beta,
        b"get a,b\r\n",
        b"delete alpha\r\n",
        b"get beta\r\n",
        b"get alpha\r\n",  # again from the beginning
    ]
    assert sent(work(trace, verbs={"get": 1}, pool=3), 3) == [b"get alpha\r\n", b"get a,b\r\n", b"get beta\r\n"]


def test_workers_go_on_where_the_one_before_ends(trace: Path) -> None:
    parts = [sent(work(trace, pool=2, sessions=2), 2, worker, 2) for worker in range(2)]
    assert parts[0] + parts[1] == sent(work(trace), 4)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory; name a file in Twitter's format"),
        (b"", "it is empty"),
        (b"0,a,1,1,1,get,0\n0,b,1\n", "line 2: b'0,b,1\\n' is not a request; write time,key,"),
        (b"x,a,1,1,1,get,0\n", "line 1: "),
        (b"0,a b,3,1,1,get,0\n", "line 1: b'a b' is not a key"),
        (b"0,%s,251,1,1,get,0\n" % (b"k" * 251), "is not a key; write 1 to 250 bytes"),
        (b"0,a,1,1048577,1,get,0\n", "a value of 1048577 bytes; write 0 to 1048576"),
        (b"0,a,1,-1,1,get,0\n", "a value of -1 bytes"),
        (b"0,a,1,1,1,steal,0\n", "'steal' is not an operation; possible: get, gets, set"),
    ],
)
def test_what_is_no_trace_is_named(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "trace.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BenchError) as error:
        read_trace(str(path))
    assert words in str(error.value)
    assert str(path) in str(error.value)


def test_a_gzip_that_was_cut_off_is_named(trace: Path, tmp_path: Path) -> None:
    zipped = tmp_path / "half.csv.gz"
    zipped.write_bytes(gzip.compress(trace.read_bytes())[:-9])
    with pytest.raises(BenchError, match=r"half\.csv\.gz"):
        read_trace(str(zipped))


def test_what_does_not_go_with_a_trace_is_reported(trace: Path) -> None:
    for change, words in (
        ({"verbs": {"touch": 1}}, "no request with the verbs touch; it has delete, get, incr, set"),
        ({"verbs": {"get": 1, "incr": 1}}, "form = 'number'"),
        ({"multiget": 2}, "leave them out"),
        (
            {"protocol": "mysql", "statements": {"get": ":key", "set": ":key", "delete": ":key"}},
            "choose text or binary",
        ),
        ({"keys": replace(work(trace).keys, apart=True)}, "apart with the distribution trace"),
    ):
        with pytest.raises(BenchError) as error:
            plan_of(task(work(trace, **change)))
        assert words in str(error.value)


SCENARIO = """\
version = 1
title = "A trace"
question = "How many requests of the trace are answered a second?"
source = "A trace in Twitter's format."
hits = "unknown"
sessions = [1]

[table]
name = "trace"
mapping = "kvref_bench"
keys = { file = "trace.csv", distribution = "trace" }

[work]
verbs = { get = 1, set = 1, delete = 1 }

[[series]]
name = "trace"
over = "memcached"

[scale.small]
warmup = 0
measure = 0.2
repetitions = 1
[scale.laptop]
[scale.full]
"""


def test_a_scenario_names_a_trace_next_to_it(trace: Path) -> None:
    file = trace.with_name("mine.toml")
    file.write_text(SCENARIO)
    made = load(str(file), "small")
    (series,) = made.series
    assert (series.work.keys.count, series.work.keys.distribution, series.work.pool) == (3, "trace", 5)
    assert series.work.values == made.table.values == Values((0, 300), trace=str(trace))
