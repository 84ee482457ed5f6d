"""A conversation of the machine as a case that can be run again."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kvref_conformance.case import case
from kvref_conformance.conversation import Exchange
from kvref_conformance.stateful.as_case import as_case
from kvref_conformance.steps import Send, Sql
from kvref_conformance.template import Names

if TYPE_CHECKING:
    from kvref_conformance.judge import Judge


class Run:
    """The part of a judge that is used."""

    keys = ("zk0", "zk1")

    def names(self) -> Names:
        """Return the names of a run with one mapping and its table."""
        return Names({"m1": "zm1", "t1": "kvc_one_z"}, str)

    def fresh_key(self, name: str) -> str:
        """Return a key."""
        return name


def written(*exchanges: Exchange) -> tuple[object, ...]:
    return as_case(case("any-order", "KV-SEQ-001"), exchanges, cast("Judge", Run())).steps


def gets(number: int, *, kept: bool = True) -> Exchange:
    answer = "VALUE zk0 0 1 {}\r\nx\r\nEND\r\n"
    return Exchange("a", "gets zk0\r\n", (answer.format("<cas>"),), answer.format(number), "", kept)


def test_keys_mappings_and_tables_get_names() -> None:
    bound = Exchange("a", "bind zm1\r\n", ("SUCCEED\r\n",), "SUCCEED\r\n")
    rows = Exchange("sql", "SELECT c1 FROM kvc_one_z WHERE c1 IN ('zk1')", ("[('zk1', 'x', 0)]",), "[]", "", kept=False)
    assert written(bound, rows) == (
        Send(("bind {m1}\r\n",), ("SUCCEED\r\n",), "a"),
        Sql("SELECT c1 FROM {t1} WHERE c1 IN ('{k0}')", (("{k0}", "x", 0),)),
    )


def test_a_number_that_was_shown_is_sent_by_its_name() -> None:
    swap = Exchange("a", "cas zk0 0 0 1 17\r\ny\r\n", ("STORED\r\n",), "EXISTS\r\n", "", kept=False)
    first, second = written(gets(17), swap)
    assert first == Send(("gets {k0}\r\n",), ("VALUE {k0} 0 1 <cas n0>\r\nx\r\nEND\r\n",), "a")
    assert second == Send(("cas {k0} 0 0 1 {n0}\r\ny\r\n",), ("STORED\r\n",), "a")


def test_a_number_that_should_be_new_is_wanted_new() -> None:
    store = Exchange("a", "set zk0 0 0 1\r\nx\r\n", ("STORED\r\n",), "STORED\r\n")
    first, _, last = written(gets(1), store, gets(1, kept=False))
    assert first == Send(("gets {k0}\r\n",), ("VALUE {k0} 0 1 <cas o0>\r\nx\r\nEND\r\n",), "a")
    assert last == Send(("gets {k0}\r\n",), ("VALUE {k0} 0 1 <new cas z>\r\nx\r\nEND\r\n",), "a")
    assert written(gets(1), store, gets(2))[2] == Send(
        ("gets {k0}\r\n",), ("VALUE {k0} 0 1 <cas>\r\nx\r\nEND\r\n",), "a"
    )


def test_frames_and_meta_commands_keep_their_numbers_by_name() -> None:
    stored = Exchange("b", "set key=zk0 flags=0 exp=0 value=x", ("set ok cas=<cas>",), "set ok cas=17", binary=True)
    swap = Exchange(
        "b", "set key=zk0 flags=0 exp=0 cas=17 value=y", ("set ok cas=<cas>",), "set ok cas=18", binary=True
    )
    meta = Exchange("a", "ms zk0 1 F0 T0 C18 c\r\nz\r\n", ("HD c<cas>\r\n",), "EX c0\r\n", "", kept=False)
    assert written(stored, swap, meta) == (
        Send(("set key={k0} flags=0 exp=0 value=x",), ("set ok cas=<cas n0>",), "b", binary=True),
        Send(("set key={k0} flags=0 exp=0 cas={n0} value=y",), ("set ok cas=<cas n1>",), "b", binary=True),
        Send(("ms {k0} 1 F0 T0 C{n1} c\r\nz\r\n",), ("HD c<cas>\r\n",), "a"),
    )
