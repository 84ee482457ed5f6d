"""The model refuses what was not recorded, and the rules of histories repeat themselves and leave nothing out."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

import pytest

from kvref import profiles
from kvref_conformance.model import steps as s
from kvref_conformance.model.expected import Answer, Closed, Seen, Served, Silence
from kvref_conformance.model.model import Model
from kvref_conformance.model.rules import Limits
from kvref_conformance.model.words import Mappings
from kvref_conformance.stateful.concurrency.exclusions import refuses
from kvref_conformance.stateful.concurrency.machine import FENCES, STEPS, TABLES, HistoryMachine
from kvref_conformance.stateful.modelled import ModelledConversation
from kvref_conformance.stateful.run import example_settings, run_machine

if TYPE_CHECKING:
    from kvref_conformance.endpoints.endpoint import Endpoint
    from kvref_conformance.model.rows import RowId
    from kvref_conformance.stateful.concurrency.run import Rows

W, R, LEVEL = "daemon_memcached_w_batch_size", "daemon_memcached_r_batch_size", "innodb_api_trx_level"
WORDS = dict.fromkeys(TABLES, ("test/t1",))
STORED, NOT_STORED, END = "STORED\r\n", "NOT_STORED\r\n", "END\r\n"
WAITS, CLOSES, SERVED = None, "closed", "served"
# What SQL sees: key of t1, value, cas number.
Sight = tuple[tuple[str, str, int], ...]
Observed = str | Sight | None


def begin(profile: str, rows: Rows = (), threads: int = 8, **settings: int) -> Model:
    facts = profiles.load(profile)
    limits = Limits.of(settings, facts)
    return Model(facts, Mappings(TABLES, WORDS), limits=limits, threads=threads, fences=FENCES, rows=rows)


def connected(profile: str, *rows: tuple[str, str], **settings: int) -> Model:
    """Return a model with two connections and rows of t1."""
    model = begin(profile, tuple(("t1", *row) for row in rows), **settings)
    for on in "ab":
        model.take(s.Open(on, "m1"))
    return model


def allowed(model: Model, *conversation: tuple[s.Step, *tuple[Observed, ...]]) -> int:
    """Return how many steps were observed as the model allows before the first that was not."""
    for number, (step, *observed) in enumerate(conversation):
        assert not refuses(model, step, transactions=True)
        expected = model.take(step)
        assert len(expected) == len(observed), expected
        if not all(is_allowed(model, *pair) for pair in zip(expected, observed, strict=True)):
            return number
    return len(conversation)


def is_allowed(model: Model, expected: object, observed: Observed) -> bool:
    match expected:
        case Silence():
            return observed is WAITS
        case Served():
            return observed == SERVED
        case Closed():
            return observed == CLOSES
        case Answer():
            return isinstance(observed, str) and model.numbers.answers(expected, observed)
        case Seen():
            assert isinstance(observed, tuple)
            fences = [(*place, row.item.value, 0, row.number.seen or 0) for place, row in expected.rows if fence(place)]
            return model.numbers.sees(expected, [*fences, *(("t1", key, value, 0, n) for key, value, n in observed)])
    raise AssertionError(expected)


def fence(place: RowId) -> bool:
    return place[1] in FENCES


def set_(on: str, key: str, value: str) -> s.Store:
    return s.Store(on, "set", key, value)


def value(key: str, text: str, number: str = "") -> str:
    return f"VALUE {key} 0 {len(text)}{number}\r\n{text}\r\nEND\r\n"


LOOK = s.Read()
K1 = (set_("a", "k1", "1"), STORED)
K3 = (set_("a", "k3", "3"), STORED)
K5 = (set_("a", "k5", "5"), STORED)
NOTHING: Sight = ()
BOTH: Sight = (("k1", "1", 11), ("k3", "3", 12))


def test_a_switch_keeps_the_count_in_the_plugin_only() -> None:
    """wbatch-070."""
    settings = {W: 3, R: 1000}
    switched = (K1, (s.Bind("a", "m1b"), "SUCCEED\r\n"), K3)
    counted = (*switched, K5, (LOOK, (*BOTH, ("k5", "5", 13))))
    anew = (*switched, K5, (LOOK, (("k1", "1", 11),)))
    assert (allowed(connected("mysql-8.0", **settings), *counted), allowed(connected("kvref", **settings), *anew)) == (
        5,
        5,
    )
    assert (allowed(connected("mysql-8.0", **settings), *anew), allowed(connected("kvref", **settings), *counted)) == (
        4,
        4,
    )


@pytest.mark.parametrize(
    ("profile", "level", "shown"), [("mysql-8.0", 1, "1"), ("kvref", 1, "2"), ("kvref", 2, "1"), ("kvref", 0, "2")]
)
def test_a_batch_of_reads_shows_one_moment(profile: str, level: int, shown: str) -> None:
    """rbatch-010, -020, -030."""
    settings = {W: 1, R: 2, LEVEL: level}
    for seen in "12":
        model = connected(profile, ("k1", "1"), **settings)
        get = s.Get("a", ("k1",))
        changed = ((get, value("k1", "1")), (s.Change("update", "t1", "k1", "2"),), (get, value("k1", seen)))
        assert (allowed(model, *changed) == 3) == (seen == shown)
        if seen == shown:
            assert allowed(model, (get, value("k1", "1"))) == 0


@pytest.mark.parametrize(
    ("profile", "shown"), [("mysql-8.0", END), ("mysql-5.6", value("k1", "1")), ("kvref", value("k1", "1"))]
)
def test_a_deleted_row_is_missing_at_once_in_8_0_only(profile: str, shown: str) -> None:
    """rbatch-032, iso-021."""
    for answer in (END, value("k1", "1")):
        model = connected(profile, ("k1", "1"), **{W: 1000, R: 1000, LEVEL: 2})
        get = (s.Get("a", ("k1",)), value("k1", "1"))
        deleted = (get, (s.Delete("b", "k1"), "DELETED\r\n"), (get[0], answer))
        assert allowed(model, *deleted) == (3 if answer == shown else 2)


@pytest.mark.parametrize(
    ("profile", "answer"), [("mysql-8.0", NOT_STORED), ("kvref", "SERVER_ERROR lock wait timeout\r\n")]
)
def test_a_lock_not_got_in_time_is_refused(profile: str, answer: str) -> None:
    """lock-001."""
    settings = {W: 1000, R: 1000, "innodb_lock_wait_timeout": 1}
    assert allowed(connected(profile, **settings), K1, (set_("b", "k1", "2"), answer)) == 2
    assert allowed(connected(profile, **settings), K1, (set_("b", "k1", "2"), STORED)) == 1


def test_sql_waits_for_a_pending_row_and_changes_what_was_committed() -> None:
    """idle-029, lock-030."""
    settings, update = {W: 2, R: 1000}, s.Change("update", "t1", "k1", "sql")
    waiting = (K1, (update, WAITS), (LOOK, NOTHING))
    assert allowed(connected("mysql-8.0", **settings), *waiting, (K3[0], STORED, SERVED)) == 4
    assert allowed(connected("mysql-8.0", **settings), K1, (update, SERVED)) == 1
    model = connected("mysql-8.0", **settings)
    assert allowed(model, *waiting, (K3[0], STORED, WAITS)) == 3
    assert allowed(model, (LOOK, BOTH)) == 0
    over_sqlite = connected("kvref", **settings)
    over_sqlite.take(K1[0])
    assert refuses(over_sqlite, update, transactions=False)


def test_a_cas_number_belongs_to_one_version() -> None:
    gets, settings = s.Get("a", ("k1",), cas=True), {W: 1, R: 1}
    first = (K1, (gets, value("k1", "1", " 7")))
    again = (set_("a", "k1", "2"), STORED)
    assert allowed(connected("mysql-8.0", **settings), *first, again, (gets, value("k1", "2", " 8"))) == 4
    assert allowed(connected("mysql-8.0", **settings), *first, again, (gets, value("k1", "2", " 7"))) == 3
    cas = s.Store("a", "cas", "k1", "3")
    assert allowed(connected("mysql-8.0", **settings), *first, (cas, STORED), (cas, "EXISTS\r\n")) == 4
    assert allowed(connected("mysql-8.0", **settings), *first, (cas, "EXISTS\r\n")) == 2


@pytest.mark.parametrize(("threads", "reason"), [(8, ""), (1, "it would block another connection's thread")])
def test_what_blocks_a_thread_of_others_is_not_sent(threads: int, reason: str) -> None:
    """A command that waits for a lock of another connection of the same thread would wait without limit."""
    model = begin("mysql-8.0", (), threads, **{W: 1000, R: 1000})
    for step in (s.Open("a", "m1"), s.Open("b", "m1"), K1[0]):
        model.take(step)
    assert refuses(model, set_("b", "k1", "2"), transactions=True) == reason


def test_nobody_connects_while_every_thread_waits() -> None:
    model = begin("mysql-8.0", (("t1", "k1", "1"),), 1, **{W: 1000, R: 1000})
    model.take(s.Open("a", "m1"))
    model.take(s.Change("update", "t1", "k1", "2", within=True))
    assert allowed(model, (set_("a", "k1", "2"), WAITS)) == 1
    assert refuses(model, s.Open("b", "m1"), transactions=True) == "every thread of the endpoint waits"
    assert allowed(model, (s.End(commit=True), STORED)) == 1
    assert not refuses(model, s.Open("b", "m1"), transactions=True)


def test_a_deadlock_and_a_flush_that_hangs_are_not_sent() -> None:
    """lock-024, lock-109."""
    model = connected("mysql-8.0", **{W: 1000, R: 1000})
    assert allowed(model, K1, (set_("b", "k3", "2"), STORED), (set_("a", "k3", "2"), WAITS)) == 3
    assert refuses(model, set_("b", "k1", "2"), transactions=True) == "a deadlock is possible"
    assert refuses(model, s.Flush("b"), transactions=True)
    assert refuses(model, s.Close("a", quits=True), transactions=True) == "it waits"


class Nobody:
    """An endpoint to which nothing is sent."""


class Imagined:
    """Histories on the model alone: what is allowed is taken for granted."""

    def __init__(self, profile: str, settings: dict[str, int]) -> None:
        self.kinds: Counter[str] = Counter()
        self.histories: list[list[s.Step]] = []
        self._profile, self._settings, self._numbers = profile, settings, 0

    def begin(self, rows: Rows) -> ModelledConversation:
        conversation = ModelledConversation(
            cast("Endpoint", Nobody()), begin(self._profile, rows, **self._settings), lambda _: None
        )
        self.histories.append(conversation.steps)
        return conversation

    def take(self, conversation: ModelledConversation, step: s.Step) -> None:
        if refuses(conversation.model, step, transactions=True):
            return
        conversation.steps.append(step)
        self.kinds[step.verb if isinstance(step, s.Store | s.Change) else type(step).__name__] += 1
        for each in conversation.model.take(step):
            if isinstance(each, Silence):
                self.kinds["SQL waits" if each.on == s.AUTOCOMMIT else "waits"] += 1
            numbers = each.numbers if isinstance(each, Answer) else ()
            for number in (number for number in numbers if number.seen is None):
                self._numbers += 1
                number.seen = self._numbers

    def finish(self, conversation: ModelledConversation) -> None:
        """Nothing is open."""


def drawn(profile: str, level: int, examples: int) -> Imagined:
    imagined = Imagined(profile, {W: 4, R: 1 if level == 3 else 4, LEVEL: level})
    own = {
        "histories": imagined,
        "names": {name: name for name in (*TABLES, *TABLES.values())},
    }
    run_machine(type("Machine", (HistoryMachine,), own), example_settings(examples, stateful_step_count=STEPS), "seed")
    return imagined


def test_the_rules_repeat_themselves() -> None:
    assert drawn("kvref", 0, 20).histories == drawn("kvref", 0, 20).histories


@pytest.mark.nightly
@pytest.mark.parametrize(("profile", "level"), [("kvref", 2), ("mysql-8.0", 0), ("mysql-8.0", 3), ("mysql-5.6", 1)])
def test_the_rules_reach_every_kind_of_step(profile: str, level: int) -> None:
    imagined = drawn(profile, level, 200)
    verbs = {"set", "add", "replace", "append", "prepend", "cas", "insert", "update", "delete"}
    names = {"Open", "Close", "Bind", "Get", "Count", "Delete", "Flush", "Read", "End"}
    waits = {"SQL waits"} | ({"waits"} if profile != "mysql-5.6" else set())
    assert {kind for kind, times in imagined.kinds.items() if times} == verbs | names | waits
    assert sum(map(len, imagined.histories)) > 15 * len(imagined.histories)
