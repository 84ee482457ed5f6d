"""Reject a Work that cannot be run, before anything is measured."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from kvref_bench.errors import BenchError
from kvref_bench.workload.commands import GETTING, OUTCOMES
from kvref_bench.workload.exchanges import prefix
from kvref_bench.workload.keys import LONGEST, key
from kvref_bench.workload.trace import positions, read_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.load.work import Work

_UNMAPPED = ("incr", "decr", "delete", "touch")


def check(work: Work) -> None:
    """Raise BenchError where the parts of a work do not go together."""
    of_protocol = _of_statements if work.protocol == "mysql" else _of_commands
    problem = next(chain(_of_verbs(work), _of_keys(work), of_protocol(work)), None)
    if problem is not None:
        raise BenchError(problem)


def _of_verbs(work: Work) -> Iterator[str]:
    if not work.verbs or min(work.verbs.values()) <= 0:
        yield f"verbs = {work.verbs}: each needs a weight above 0, for example get = 1"
    if unknown := [verb for verb in work.verbs if verb not in OUTCOMES]:
        yield f"verbs: {', '.join(unknown)} is not a verb; possible: {', '.join(OUTCOMES)}"
    if work.operations is not None and work.operations % work.depth:
        yield f"operations = {work.operations} is not a multiple of depth = {work.depth}; make it one"
    if work.multiget > 1 and not work.verbs.keys() & set(GETTING):
        yield f"multiget = {work.multiget} without get or gets; leave it out"
    counting, growing = (
        ", ".join(sorted(work.verbs.keys() & each)) for each in ({"incr", "decr"}, {"append", "prepend"})
    )
    if counting and work.values.form != "number":
        yield f"{counting}: counts numbers only; set form = 'number' in the table's values"
    if counting and growing:
        yield f"{growing} makes of a number what {counting} cannot count"


def _of_keys(work: Work) -> Iterator[str]:
    keys = work.keys
    if keys.distribution == "own" and keys.missing:
        yield f"missing = {keys.missing} with the distribution own, whose keys are all missing; leave it out"
    if keys.apart and keys.distribution in ("own", "file", "trace"):
        yield f"apart with the distribution {keys.distribution}; leave it out: it says by itself who has which keys"
    if keys.apart and work.sessions > keys.count:
        yield f"apart: {work.sessions} sessions have no {keys.count} keys to part; give a bigger count"
    if (keys.distribution in ("file", "trace")) != (keys.file is not None):
        yield f"distribution = {keys.distribution!r} with file = {keys.file!r}; the two belong together"
    if keys.distribution == "trace":
        if work.protocol == "mysql":
            yield "a trace with the protocol mysql; its operations are commands of memcached: choose text or binary"
        if work.multiget > 1 or keys.missing:
            yield "multiget or missing with a trace; leave them out: the trace says which keys are requested"
        if not len(positions(str(keys.file), frozenset(work.verbs))):
            there = ", ".join(sorted(set(read_trace(str(keys.file)).verbs)))
            yield f"trace {keys.file}: no request with the verbs {', '.join(work.verbs)}; it has {there}"


def _of_statements(work: Work) -> Iterator[str]:
    if missing := [verb for verb in work.verbs if verb not in work.statements]:
        yield f"protocol mysql: statements has none for {', '.join(missing)}; write one with :key"
    if work.route != "none":
        yield f"protocol mysql: route = {work.route!r} is of memcached; leave it out"


def _of_commands(work: Work) -> Iterator[str]:
    if work.protocol == "binary" and work.route == "bind":
        yield "route bind: bind is a command of the text protocol; choose switch for the binary protocol"
    if work.tls and (work.login or work.route in ("switch", "bind")):
        yield "tls: a connection sends nothing before its handshake; leave out login and the routes switch and bind"
    if work.route != "none" and not work.mapping:
        yield f"route = {work.route!r} needs the name of a mapping; set mapping"
    unmapped = [verb for verb in work.verbs if verb in _UNMAPPED]
    if work.route == "each" and unmapped:
        yield f"route each: {', '.join(unmapped)} takes no @@mapping in front of its key; choose switch or bind"
    if work.keys.file is None:
        longest = len(prefix(work)) + len(key(work.keys, work.keys.count))
        if longest > LONGEST:
            yield f"keys of {longest} bytes with their mapping; memcached takes {LONGEST}: set a shorter length"
