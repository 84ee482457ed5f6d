"""Verdicts: make the calls of a requirement against the scripted server and judge what the client returns.

One rule judges all requirements. The last call, to whose reply the fault belongs, returns a permitted result and never
another value. Then the server is honest again: `get second` never returns another value than `two`; once it is right, a
set and a get are right too. Only requirements with `recovers` demand that it is right, within some seconds.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kvref_conformance.clients.adapter import Adapter, AdapterError
from kvref_conformance.clients.requirements import CA, MISS, RAISED, RIGHT
from kvref_conformance.clients.server import CLOSED, RECEIVED, ScriptedServer
from kvref_conformance.clients.tls import AUTHORITY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kvref_conformance.clients.adapter import Result
    from kvref_conformance.clients.requirements import Requirement
    from kvref_conformance.clients.server import Event

HOLDS: Final = "holds"
FAILS: Final = "fails"
UNSUPPORTED: Final = "unsupported"
_AFTER: Final[tuple[tuple[list[Any], Any], ...]] = (
    (["get", "second"], "two"),
    (["set", "second", "again"], True),
    (["get", "second"], "again"),
)
# Seconds before each further attempt of the first call after the fault. Together they exceed the 2 s within which
# libmemcached, which counts whole seconds, connects again: in less time the clock decides what is judged.
_PAUSES: Final = (0.1, 0.2, 0.3, 0.6, 1.2)
_SETTLED: Final = 0.06  # seconds in which a client that reads between its calls has read what the server has sent
_RACES: Final = 5  # further attempts at a requirement on which a client may be right by chance
_SHOWN: Final = 600  # bytes of a conversation's data


class Step(NamedTuple):
    """A call, its result, and what the server received and sent meanwhile."""

    call: list[Any]
    result: Result
    wire: tuple[Event, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the step for a reader in any language; bytes are latin-1 text."""
        wire = [
            [event.connection, event.kind, *([] if event.kind == CLOSED else [_shown(event.data)])]
            for event in self.wire
        ]
        return {"call": self.call, **self.result, "wire": wire}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one requirement for one client.

    Args:
        outcome: HOLDS, FAILS or UNSUPPORTED.
        why: what is wrong, or the call that the client lacks.
        steps: the conversation, at most ten calls.
    """

    outcome: str
    why: str = ""
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """What is judged of one client: its name and versions, and a verdict for each requirement of its protocol."""

    client: str
    version: str
    runtime: str
    verdicts: dict[str, Verdict]


class _FailedError(Exception):
    """The requirement does not hold; the text says why."""


class _UnsupportedError(Exception):
    """The client lacks a call; the text says which."""


class _Conversation:
    """The calls of one requirement and what they return."""

    def __init__(self, requirement: Requirement, adapter: Adapter, server: ScriptedServer) -> None:
        self.steps: list[Step] = []
        self._requirement, self._adapter, self._server = requirement, adapter, server
        self._patience = 4 * adapter.timeout + 2.0
        self._tokens: Any = None
        self._seen = 0
        # Seconds before each call: a reply that belongs to no call, or to an earlier one, has arrived by then.
        self._pause = 0.0

    def call(self, call: list[Any]) -> Result:
        """Make a call and record it.

        Raises:
            _UnsupportedError: the client lacks it.
            AdapterError: it does not return.
        """
        shown = [self._tokens if each == "$cas" else each for each in call]
        sent = [
            each | {"ca": str(AUTHORITY)} if isinstance(each, dict) and each.get("ca") == CA else each for each in shown
        ]
        time.sleep(self._pause)
        self._server.settle()
        try:
            result = self._adapter.call(sent, self._patience)
        except AdapterError as error:
            self._record(shown, {"hangs": str(error)})
            raise
        self._record(shown, result)
        if "cannot" in result:
            raise _UnsupportedError(str(result["cannot"]))
        if isinstance(result.get("returned"), dict):
            result = {"returned": {key: each for key, each in result["returned"].items() if each is not None}}
        if call[0] == "gets" and isinstance(result.get("returned"), list):
            self._tokens = result["returned"][1]
            result = {"returned": result["returned"][0]}
        return result

    def _record(self, call: list[Any], result: Result) -> None:
        events = tuple(self._server.events[self._seen :])
        self._seen += len(events)
        self.steps.append(Step(call, result, events))

    def run(self) -> None:
        """Make all calls.

        Raises:
            _FailedError: a result is not permitted.
            _UnsupportedError: the client lacks a call.
            AdapterError: a call does not return.
        """
        one, last = self._requirement, len(self._requirement.calls) - 1
        if one.fault is not None and (one.fault.early or one.fault.records):
            self._server.arm(one.fault)
        if self._connect():
            for place, call in enumerate(one.calls):
                if place == last and one.fault is not None and not (one.fault.early or one.fault.records):
                    self._server.arm(one.fault)
                self._check(call, self.call(call), one.expected(place), one.allowed if place == last else (RIGHT,))
            self._after()
        if one.whole_keys:
            self._check_keys(str(one.calls[last][1]))
        if one.sends_nothing and any(event.kind == RECEIVED for event in self._server.events):
            raise _FailedError("the server receives a request")
        if one.hides and any(one.credentials[1] in str(step.result.get("raised")) for step in self.steps):
            raise _FailedError("an error has the password in its text")

    def _connect(self) -> bool:
        """Connect; return whether there are calls to make: not if the client may raise an error and does so."""
        one = self._requirement
        call = ["connect", "127.0.0.1", self._server.port, *([one.options] if one.options else [])]
        for pause in (*_PAUSES, None):
            connected = self.call(call)
            if "raised" not in connected:
                if one.fault is None or not one.fault.early:
                    self.steps.clear()
                return True
            if RAISED not in one.allowed or (one.recovers and pause is None):
                raise _FailedError(f"connect raises {connected['raised']}")
            if not one.recovers:
                return False
            time.sleep(pause or 0)
        return False

    def _after(self) -> None:
        if self._requirement.fault is not None and self._requirement.fault.apart:
            self._server.send_apart()
            self._pause = _SETTLED
        (first, right), *others = _AFTER
        for pause in (*_PAUSES, None):
            result = self.call(first)
            self._check(first, result, right, (RIGHT, RAISED, MISS))
            if _is_right(result, right):
                break
            if pause is None:
                if self._requirement.recovers:
                    raise _FailedError(f"get second is not right again within {sum(_PAUSES):.1f} s")
                return
            time.sleep(pause)
        for call, expected in others:
            self._check(call, self.call(call), expected, (RIGHT,))

    def _check(self, call: Sequence[Any], result: Result, right: Any, allowed: Sequence[str]) -> None:
        shown = " ".join(json.dumps(each, ensure_ascii=True) if not isinstance(each, str) else each for each in call)
        shown = repr(shown[:60])[1:-1]
        if "raised" in result:
            if RAISED not in allowed:
                raise _FailedError(f"{shown} raises {result['raised']}")
        elif "returned" not in result:
            raise _FailedError(f"{shown} has no result: {result}")
        elif not (RIGHT in allowed and _is_right(result, right)):
            returned = result["returned"]
            if not (MISS in allowed and _is_miss(returned, right)):
                raise _FailedError(f"{shown} returns {json.dumps(returned)[:100]}")

    def _check_keys(self, key: str) -> None:
        parts = set(key.split()) | {key[:length] for length in range(1, len(key))}
        fragments = {part.encode() for part in parts - {key, "second"}}
        for command in self._server.commands:
            if command.verb == "flush_all":
                raise _FailedError("flush_all is received, which is part of a key")
            if fragments & set(command.keys):
                raise _FailedError(f"{command.verb} is received with only a part of the key")


def _is_right(result: Result, right: Any) -> bool:
    if "returned" not in result:
        return False
    returned = result["returned"]
    if isinstance(right, bool) or isinstance(returned, bool) or right is None or returned is None:
        return returned is right or (right is False and returned is None)
    # Some clients return numbers as text.
    return bool(returned == right or (str(right).isdigit() and str(returned).strip() == str(right)))


def _is_miss(returned: Any, right: Any) -> bool:
    if isinstance(right, dict):
        return returned is None or (isinstance(returned, dict) and returned.items() <= right.items())
    return returned is None or returned is False


def judge(requirement: Requirement, adapter: Adapter) -> tuple[Verdict, bool]:
    """Judge one requirement.

    Args:
        requirement: of the adapter's protocol.
        adapter: a running one.

    Returns:
        The verdict, and whether the adapter can go on.
    """
    with ScriptedServer(requirement.store(), adapter.timeout, requirement.entry) as server:
        conversation = _Conversation(requirement, adapter, server)
        try:
            conversation.run()
        except _UnsupportedError as error:
            return Verdict(UNSUPPORTED, str(error)), True
        except _FailedError as error:
            return Verdict(FAILS, str(error), tuple(conversation.steps)), True
        except AdapterError as error:
            return Verdict(FAILS, str(error), tuple(conversation.steps)), False
    return Verdict(HOLDS), True


def judge_client(
    words: Sequence[str],
    protocol: str,
    requirements: Iterable[Requirement],
    timeout: float,
    environment: Mapping[str, str] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Judged:
    """Judge a client. A failure counts if it occurs again in new processes.

    A wrong value and a call without a result have to occur twice. Other failures may have their cause in a busy
    machine: they have to occur a third time, and each time the timeout is doubled. A reply that arrives apart is tried
    six times, and fails if two of them fail.

    Args:
        words: command line of its adapter.
        protocol: text, binary or meta.
        requirements: those of other protocols are left out.
        timeout: of the client for each reply, in seconds.
        environment: additional environment variables of the adapter.
        progress: called with a line for each failure.

    Raises:
        AdapterError: the adapter does not start.
    """

    def start(seconds: float) -> Adapter:
        return Adapter(words, protocol, seconds, environment)

    adapter = start(timeout)
    head = (adapter.client, adapter.version, adapter.runtime)
    verdicts: dict[str, Verdict] = {}
    try:
        for requirement in requirements:
            if protocol not in requirement.protocols:
                continue
            verdict, usable = judge(requirement, adapter)
            if not usable:
                adapter.close()
                adapter = start(timeout)
            raced = requirement.fault is not None and requirement.fault.apart
            if raced and verdict.outcome != UNSUPPORTED:
                verdict = _of_races(requirement, verdict, lambda: start(2 * timeout))
            elif verdict.outcome == FAILS:
                for seconds in (2 * timeout, 4 * timeout):
                    with start(seconds) as other:
                        verdict, _ = judge(requirement, other)
                    if verdict.outcome != FAILS or not usable or " returns " in verdict.why:
                        break
            if raced or verdict.outcome == FAILS:
                progress(f"{requirement.id}: {verdict.outcome} {verdict.why}")
            verdicts[requirement.id] = verdict
    finally:
        adapter.close()
    return Judged(*head, verdicts)


def _of_races(requirement: Requirement, first: Verdict, start: Callable[[], Adapter]) -> Verdict:
    """Judge a requirement on which a client may be right by chance, from its first verdict on.

    An event loop may look at surplus bytes before or after it sends the next request.
    """
    failures = int(first.outcome == FAILS)
    verdict = first
    for _ in range(_RACES):
        with start() as other:
            verdict, _usable = judge(requirement, other)
        failures += verdict.outcome == FAILS
        if verdict.outcome == FAILS and failures > 1:
            return verdict
    return Verdict(HOLDS)


def _shown(data: bytes) -> str:
    shown = data.decode("latin-1")
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}... ({len(shown)} bytes)"
