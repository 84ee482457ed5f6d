"""Reject a Work that cannot be run, before anything is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_bench.errors import BenchError
from kvref_bench.workload.commands import GETTING, OUTCOMES
from kvref_bench.workload.exchanges import prefix
from kvref_bench.workload.keys import LONGEST, key
from kvref_bench.workload.trace import positions, read_trace

if TYPE_CHECKING:
    from kvref_bench.load.work import Work

_UNMAPPED = ("incr", "decr", "delete", "touch")


def check(work: Work) -> None:
    """Raise BenchError where the parts of a work do not go together."""
    verbs = list(work.verbs)
    problem = _of_verbs(work, verbs) or _of_keys(work, verbs)
    if problem is None and work.protocol == "mysql":
        problem = _of_statements(work, verbs)
    elif problem is None:
        problem = _of_commands(work, verbs)
    if problem is not None:
        raise BenchError(problem)


def _of_verbs(work: Work, verbs: list[str]) -> str | None:
    if not verbs or min(work.verbs.values()) <= 0:
        return f"verbs = {work.verbs}: each needs a weight above 0, for example get = 1"
    unknown = [verb for verb in work.verbs if verb not in OUTCOMES]
    if unknown:
        return f"verbs: {', '.join(unknown)} is not a verb; possible: {', '.join(OUTCOMES)}"
    if work.operations is not None and work.operations % work.depth:
        return f"operations = {work.operations} is not a multiple of depth = {work.depth}; make it one"
    if work.multiget > 1 and not set(verbs) & set(GETTING):
        return f"multiget = {work.multiget} without get or gets; leave it out"
    return None


def _of_keys(work: Work, verbs: list[str]) -> str | None:
    keys = work.keys
    if keys.distribution == "own" and keys.missing:
        return f"missing = {keys.missing} with the distribution own, whose keys are all missing; leave it out"
    if keys.apart and keys.distribution in ("own", "file", "trace"):
        return f"apart with the distribution {keys.distribution}; leave it out: it says by itself who has which keys"
    if keys.apart and work.sessions > keys.count:
        return f"apart: {work.sessions} sessions have no {keys.count} keys to part; give a bigger count"
    if (keys.distribution in ("file", "trace")) != (keys.file is not None):
        return f"distribution = {keys.distribution!r} with file = {keys.file!r}; the two belong together"
    if keys.distribution == "trace" and (problem := _of_trace(work, str(keys.file))):
        return problem
    return _of_numbers(work, set(verbs) & {"incr", "decr"}, set(verbs) & {"append", "prepend"})


def _of_trace(work: Work, file: str) -> str | None:
    if work.protocol == "mysql":
        return "a trace with the protocol mysql; its operations are commands of memcached: choose text or binary"
    if work.multiget > 1 or work.keys.missing:
        return "multiget or missing with a trace; leave them out: the trace says which keys are requested"
    if not len(positions(file, frozenset(work.verbs))):
        there = ", ".join(sorted(set(read_trace(file).verbs)))
        return f"trace {file}: no request with the verbs {', '.join(work.verbs)}; it has {there}"
    return None


def _of_numbers(work: Work, counting: set[str], growing: set[str]) -> str | None:
    if counting and work.values.form != "number":
        return f"{', '.join(sorted(counting))}: counts numbers only; set form = 'number' in the table's values"
    if counting and growing:
        return f"{', '.join(sorted(growing))} makes of a number what {', '.join(sorted(counting))} cannot count"
    return None


def _of_statements(work: Work, verbs: list[str]) -> str | None:
    missing = [verb for verb in verbs if verb not in work.statements]
    if missing:
        return f"protocol mysql: statements has none for {', '.join(missing)}; write one with :key"
    if work.route != "none":
        return f"protocol mysql: route = {work.route!r} is of memcached; leave it out"
    return None


def _of_commands(work: Work, verbs: list[str]) -> str | None:
    if work.protocol == "binary" and work.route == "bind":
        return "route bind: bind is a command of the text protocol; choose switch for the binary protocol"
    if work.tls and (work.login or work.route in ("switch", "bind")):
        return "tls: a connection sends nothing before its handshake; leave out login and the routes switch and bind"
    if work.route != "none" and not work.mapping:
        return f"route = {work.route!r} needs the name of a mapping; set mapping"
    unmapped = [verb for verb in verbs if verb in _UNMAPPED]
    if work.route == "each" and unmapped:
        return f"route each: {', '.join(unmapped)} takes no @@mapping in front of its key; choose switch or bind"
    if work.keys.file is None:
        longest = len(prefix(work)) + len(key(work.keys, work.keys.count))
        if longest > LONGEST:
            return f"keys of {longest} bytes with their mapping; memcached takes {LONGEST}: set a shorter length"
    return None
