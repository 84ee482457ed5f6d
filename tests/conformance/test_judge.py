"""From a case to a verdict: against an endpoint that says what the test wants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kvref.errors import SuiteError
from kvref.specification.deviations import Deviation, Deviations
from kvref_conformance.case import Case, Setup, by_fact, case, send, send_unanswered, sql
from kvref_conformance.endpoints import endpoint
from kvref_conformance.errors import NotRun
from kvref_conformance.judging.budget import Budget
from kvref_conformance.judging.judge import Judge
from kvref_conformance.judging.verdict import (
    COULD_NOT_JUDGE,
    DEVIATES,
    DOES_NOT_CONFORM,
    FAILS,
    HOLDS,
    NOT_RUN,
    UNSUPPORTED,
    Tally,
    Verdict,
)
from kvref_conformance.stateful.generated import judge_generated
from kvref_conformance.steps import Disconnect

Judging = Callable[..., Verdict]
GET = case("get-x", "KV-CORE-041", send("get x\r\n", "END\r\n"))


@pytest.fixture
def judging(scripted: Callable[..., Any]) -> Judging:
    """Return a function that judges one case by the answers of an endpoint."""

    def judged(
        one: Case,
        answers: dict[bytes, bytes],
        *rows: Deviation,
        profile: str = "memcached",
        flush: str = "",
        pause: float = 0.0,
    ) -> Verdict:
        target = endpoint.find(scripted(answers, pause=pause).where, profile)
        return Judge(target, Deviations(rows), None, flush, "zz").judge(one, "retrieval")

    return judged


def row(subject: str, *pairs: tuple[str, str]) -> Deviation:
    return Deviation(subject, "it says nothing", ("core:verb-002",), pairs)


def judge_of(server: Any, budget: Budget) -> Judge:
    judge = Judge(endpoint.find(server.where, "memcached"), Deviations(()), None, "", "zz")
    judge.budget = budget
    return judge


def test_a_case_that_takes_too_long_hangs(scripted: Callable[..., Any]) -> None:
    server = scripted({b"get x": b"END\r\n"}, pause=0.05)
    judge = judge_of(server, Budget(case_seconds=0.01))
    verdict = judge.judge(case("get-x", "KV-CORE-041", *[send("get x\r\n", "END\r\n")] * 9), "retrieval")
    assert verdict.verdict == FAILS
    assert verdict.conversation[-1].note == "hang: the case is not over within 0.01 s"
    assert server.lines.count(b"get x") == 1


def test_after_the_time_limit_nothing_is_tried(scripted: Callable[..., Any]) -> None:
    judge = judge_of(scripted({b"get x": b"END\r\n"}), Budget(1e-9))
    verdict = judge.judge(GET, "retrieval")
    reason = "the time limit of the run of 1e-09 s is reached: --time-limit SECONDS sets another"
    assert (verdict.verdict, verdict.reason) == (NOT_RUN, reason)
    assert Tally([verdict, replace(verdict, verdict=HOLDS)]).exit_code() == COULD_NOT_JUDGE
    assert Tally([verdict, replace(verdict, verdict=FAILS)]).exit_code() == DOES_NOT_CONFORM


def test_the_time_limit_within_a_case_is_no_failure(scripted: Callable[..., Any]) -> None:
    server = scripted({b"get x": b"END\r\n"}, pause=0.05)
    target = endpoint.find(server.where, "memcached")
    judge = Judge(target, Deviations(()), None, "", "zz")
    judge.budget = Budget(0.05)
    verdict = judge.judge(case("get-x", "KV-CORE-041", *[send("get x\r\n", "END\r\n")] * 9), "retrieval")
    assert (verdict.verdict, verdict.reason[:25]) == (NOT_RUN, "the time limit of the run")


def test_after_some_hangs_the_rest_of_a_chapter_is_not_tried(scripted: Callable[..., Any]) -> None:
    judge = judge_of(scripted({b"get x": b"END\r\n"}), Budget(hangs=2))
    for _ in range(2):
        assert judge.judge(GET, "retrieval").verdict == HOLDS
        judge.budget.count_hang("retrieval")
    refused = judge.judge(GET, "retrieval")
    reason = "2 cases of the chapter retrieval hung, the rest is not run: --max-hangs 0 runs all"
    assert (refused.verdict, refused.reason) == (NOT_RUN, reason)
    assert judge.judge(GET, "storage").verdict == HOLDS


def test_an_exchange_is_kept_as_the_case_has_it_too(judging: Judging) -> None:
    hole = case(
        "hole", "KV-CORE-041", send("get x\r\n", ("END\r\n", "VALUE x 0 <number>\r\n")), send("get y\r\n", "END\r\n")
    )
    received = {b"get x": b"VALUE x 0 12\r\n", b"get y": b"VERSION 9.9.9 is no answer\r\n"}
    first, second = judging(hole, received).conversation
    assert (first.got, first.written) == ("VALUE x 0 12\r\n", ("get x\r\n", "VALUE x 0 <number>\r\n"))
    assert (second.passed, second.written) == (False, ("get y\r\n", "VERSION {version} is no answer\r\n"))


def test_any_of_several_answers_is_allowed_and_facts_are_looked_up(judging: Judging) -> None:
    several = case("several", "KV-CORE-041", send("get x\r\n", ("END\r\n", "ERROR\r\n")))
    assert judging(several, {b"get x": b"ERROR\r\n"}).verdict == HOLDS
    fact = case("fact", "KV-CORE-041", send("get x\r\n", by_fact("arith.decr_pads", yes="END\r\n", no="ERROR\r\n")))
    assert judging(fact, {b"get x": b"END\r\n"}).verdict == HOLDS
    assert judging(fact, {b"get x": b"END\r\n"}, profile="mysql-8.0").verdict == FAILS


def test_an_answer_where_none_may_come_fails(judging: Judging) -> None:
    early = case("early", "KV-CONN-010", send_unanswered("set x\r\n"))
    assert judging(early, {b"set x": b"STORED\r\n"}).verdict == FAILS
    assert judging(early, {b"set x": b""}).verdict == HOLDS


def test_a_hang_and_a_close_are_reported(judging: Judging) -> None:
    silent = case("silent", "KV-CORE-041", send("get x\r\n", "END\r\n", patience=0.2))
    assert "(the endpoint closed the connection)" in judging(silent, {b"get x": b"<close>"}).text
    stays = case("stays", "KV-CONN-008", send("quit\r\n", "", closes=True, patience=0.2))
    assert "(hang: no close within 0.2 s)" in judging(stays, {b"quit": b""}).text
    assert judging(stays, {b"quit": b"<close>"}).verdict == HOLDS


def test_a_connection_that_was_hung_up_is_opened_anew(judging: Judging) -> None:
    again = case("again", "KV-CORE-041", send("get x\r\n", "END\r\n"), Disconnect(), send("get x\r\n", "END\r\n"))
    assert judging(again, {b"get x": b"END\r\n"}).verdict == HOLDS


def test_a_documented_deviation_must_fail_as_recorded(judging: Judging) -> None:
    answers = {b"get x": b"ERROR\r\n"}
    verdict = judging(GET, answers, row("get-x", ("get x\r\n", "ERROR\r\n")))
    assert (verdict.verdict, verdict.reason) == (DEVIATES, "it says nothing [core:verb-002]")
    assert judging(GET, answers, row("KV-CORE-041", ("get x\r\n", "ERROR\r\n"))).verdict == DEVIATES
    otherwise = judging(GET, answers, row("get-x", ("get x\r\n", "NOT_FOUND\r\n")))
    assert otherwise.verdict == FAILS
    assert "deviates, but not as documented" in otherwise.text


def test_a_deviation_that_healed_fails(judging: Judging) -> None:
    verdict = judging(GET, {b"get x": b"END\r\n"}, row("get-x", ("get x\r\n", "ERROR\r\n")))
    assert verdict.verdict == FAILS
    assert "unexpected pass" in verdict.text


def test_a_deviation_may_be_that_the_connection_stays_open(judging: Judging) -> None:
    stays = case("stays", "KV-CONN-008", send("quit\r\n", "", closes=True, patience=0.2))
    recorded = row("stays", ("quit\r\n", "ERROR\r\n"))
    still_open = replace(recorded, stays_open=True)
    assert judging(stays, {b"quit": b"ERROR\r\n"}, still_open).verdict == DEVIATES
    assert judging(stays, {b"quit": b"ERROR\r\n"}, recorded).verdict == FAILS
    assert judging(stays, {b"quit": b"NO\r\n"}, still_open).verdict == FAILS
    assert judging(stays, {b"quit": b"ERROR\r\n<close>"}, still_open).verdict == FAILS


def test_what_does_not_apply_is_unsupported(judging: Judging) -> None:
    verdict = judging(case("bind", "KV-BIND-003", send("bind no-such\r\n", "NOT_FOUND\r\n")), {})
    assert (verdict.verdict, verdict.reason) == (UNSUPPORTED, "KV-BIND-003 does not apply to profile memcached")


@pytest.mark.parametrize(
    "one",
    [
        case("names", "KV-MAP-001", send("get @@{m1}.{k}\r\n", "END\r\n")),
        case("rows", "KV-MAP-001", sql("SELECT 1", (1,))),
        case("setup", "KV-MAP-001", send("get x\r\n", "END\r\n"), setup=Setup(":")),
    ],
    ids=lambda one: one.id,
)
def test_what_needs_sql_is_not_judged_without(judging: Judging, one: Case) -> None:
    verdict = judging(one, {}, profile="mysql-8.0")
    assert verdict.verdict == NOT_RUN
    assert "needs --sql DSN" in verdict.reason


def test_flush_all_is_not_sent_where_it_would_hurt(judging: Judging) -> None:
    verdict = judging(case("flush", "KV-FLUSH-001", send("flush_all\r\n", "OK\r\n")), {}, flush="it holds items")
    assert (verdict.verdict, verdict.reason, verdict.conversation) == (NOT_RUN, "it holds items", ())


def test_an_unknown_requirement_is_a_fault_of_the_suite(judging: Judging) -> None:
    with pytest.raises(SuiteError, match="KV-CORE-999"):
        judging(case("odd", "KV-CORE-999", send("get x\r\n", "END\r\n")), {})


def test_a_generated_case_begins_with_its_own_settings(scripted: Callable[..., Any]) -> None:
    brought: list[object] = []

    def bring(settings: object) -> None:
        brought.append(settings)
        raise NotRun("it cannot be started again")

    target = endpoint.find(scripted({}).where, "memcached")
    judge = Judge(target, Deviations([]), None, "", "zz", cast("Any", SimpleNamespace(bring=bring)))
    generated = Case("any-order-of-commands", ("KV-SEQ-001",), ())
    (verdict,) = judge_generated(judge, generated, "commands", 1, 1)
    assert (verdict.verdict, verdict.reason, brought) == (NOT_RUN, "it cannot be started again", [None])
