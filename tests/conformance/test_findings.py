"""What makes two things that generated conversations found the same, and when looking ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from kvref import profiles
from kvref_conformance.case import case
from kvref_conformance.errors import CaseFailed
from kvref_conformance.judging import findings
from kvref_conformance.judging.budget import TIME_LIMIT, Budget
from kvref_conformance.judging.conversation import Exchange
from kvref_conformance.judging.findings import Search, ShrinkLimit, ShrinkLimitReached, signature
from kvref_conformance.judging.verdict import CRASH, FAILS, HOLDS, NOT_RUN, Verdict
from kvref_conformance.stateful.examples import judge_examples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kvref_conformance.judging.judge import Judge

KEYS = ["z1k0", "z1k1"]
CASE = case("any", "KV-SEQ-001")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("get z1k0\r\n", "END", "ERROR"), ("get z1k1\r\n", "END", "ERROR"), True),
        (("incr z1k0 1\r\n", "5", "7"), ("decr z1k1 30\r\n", "80", "9"), True),
        (("set z1k0 0 0 1\r\nx\r\n", "STORED", "ERROR"), ("add z1k0 0 0 1\r\nx\r\n", "NOT_STORED", "ERROR"), True),
        (("set z1k0 0 0 1\r\nx\r\n", "STORED", "NOT_STORED"), ("set z1k0 0 0 1\r\nx\r\n", "STORED", "ERROR"), False),
        (("get z1k0\r\n", "END", "ERROR"), ("touch z1k0 1\r\n", "END", "ERROR"), False),
        (("delete z1k0 noreply\r\n", "", "ERROR"), ("incr z1k0 1 noreply\r\n", "", "ERROR"), True),
        (("delete z1k0 noreply\r\n", "", "ERROR"), ("delete z1k0\r\n", "DELETED", "ERROR"), False),
        (("get z1k0\r\n", "END", "VALUE z1k0 0 1\r\nx"), ("get z1k0\r\n", "END", "VALUE z1k0 7 3\r\nabc"), True),
    ],
)
def test_two_things_are_the_same(one: tuple[str, str, str], other: tuple[str, str, str], same: bool) -> None:
    first, second = (signature(request, [allowed], got, KEYS) for request, allowed, got in (one, other))
    assert (first == second) is same


class Run:
    """The part of a judge that is used."""

    liveness = SimpleNamespace(ended="")
    budget = Budget(1e-9)
    endpoint = SimpleNamespace(profile=profiles.load("kvref"))

    def statement_of(self, _: object) -> str:
        """Return a sentence."""
        return "a sentence"

    def explain(self, _: object, text: str) -> str:
        """Return the text."""
        return text


def test_the_shortest_conversation_is_kept_when_the_time_ends_in_a_longer_one() -> None:
    judge = cast("Judge", SimpleNamespace(budget=Budget(), liveness=SimpleNamespace(is_lost=lambda: False, ended="")))
    search = Search(judge)
    long, short = (tuple(Exchange("a", "get k\r\n", (), "") for _ in range(count)) for count in (3, 2))
    for shown in (long, short, long):
        with pytest.raises(CaseFailed):
            search.fail("any", shown, ("get",))
    assert search.last is short
    assert not search.take()
    search.begin()
    search.fail("any", short, ("get",))
    assert search.last == ()


def test_the_conversation_that_ended_the_endpoint_for_good_is_kept_though_it_is_longer() -> None:
    liveness = SimpleNamespace(is_lost=lambda: bool(liveness.ended), ended="", bring_back=lambda _case: "stays away")
    search = Search(cast("Judge", SimpleNamespace(budget=Budget(), liveness=liveness)))
    long, short = (tuple(Exchange("a", "get k\r\n", (), "") for _ in range(count)) for count in (3, 2))
    with pytest.raises(CaseFailed):
        search.fail("any", short, ("get",))
    liveness.ended = "it stays away"
    with pytest.raises(findings.ShrinkLimitReached):
        search.fail("any", long, ("get",))
    assert (search.last, search.signature) == (long, (findings.ENDED, "get"))


class Found:
    """A search that takes whatever is found."""

    def __init__(self, crashes: Sequence[bool] = ()) -> None:
        self.patience = SimpleNamespace(over=False)
        self.most = findings.MOST
        self.last: tuple[Exchange, ...] = ()
        self._crashes = list(crashes)

    def begin(self) -> None:
        """Look for another thing."""
        self.last = (Exchange("a", f"get {len(self._crashes)}", (), ""),)

    def run(self) -> None:
        """Find as many things as are left."""
        if self._crashes:
            raise CaseFailed("something")

    def take(self) -> bool:
        """Return whether the endpoint ended."""
        return self._crashes.pop(0)


def judged(search: object, run: Callable[[], None]) -> list[Verdict]:
    return judge_examples(cast("Search", search), cast("Judge", Run()), CASE, "commands", 1, run, lambda: CASE)


def test_looking_ends_where_nothing_is_found_or_enough() -> None:
    assert [each.verdict for each in judged(Found(), lambda: None)] == [HOLDS]
    search = Found([False, True])
    found = judged(search, search.run)
    assert [(each.case, each.verdict) for each in found] == [("any", FAILS), ("any~2", CRASH)]
    assert ["get 2" in found[0].text, "get 1" in found[1].text] == [True, True]
    search = Found([False] * 100)
    assert len(judged(search, search.run)) == findings.MOST


def test_patience_ends_some_time_after_the_first_find(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(findings.time, "monotonic", lambda: clock[0])
    patience = ShrinkLimit(Budget())
    clock[0] = 1000.0
    patience.check()
    patience.found()
    clock[0] += findings.SHORTENING_SECONDS
    patience.found()
    patience.check()
    clock[0] += 1
    with pytest.raises(ShrinkLimitReached):
        patience.check()
    patience.begin()
    patience.check()


def test_looking_ends_at_the_time_limit_of_the_run() -> None:
    found = judged(Found(), ShrinkLimit(Run.budget).check)
    assert [(each.verdict, each.reason.startswith(TIME_LIMIT)) for each in found] == [(NOT_RUN, True)]
