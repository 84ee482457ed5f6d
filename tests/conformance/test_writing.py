"""A generated conversation as a case that can be run again."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kvref_conformance.case import case
from kvref_conformance.judging.conversation import Exchange
from kvref_conformance.stateful.as_case import as_case
from kvref_conformance.steps import Send, Sql, Step
from kvref_conformance.wire.template import Names

if TYPE_CHECKING:
    from kvref_conformance.judging.judge import Judge


class Run:
    """The part of a judge that is used."""

    keys = ("zk0", "zk1")

    def names(self) -> Names:
        """Return the names of a run with one mapping and its table."""
        return Names({"m1": "zm1", "t1": "kvc_one_z"}, str)

    def fresh_key(self, name: str) -> str:
        """Return a key."""
        return name


def exchange(step: Step, *, opening: bool = False) -> Exchange:
    sent = "".join(step.packets) if isinstance(step, Send) else str(step)
    return Exchange("a", sent, (), "", opening=opening, step=step)


BOUND = exchange(Send(("bind zm1\r\n",), ("SUCCEED\r\n",), "a"), opening=True)


def test_keys_mappings_and_tables_get_names() -> None:
    rows = Sql("SELECT c1 FROM kvc_one_z WHERE c1 IN ('zk1')", (("zk1", "x", 0),))
    get = Send(("get @@zm1.zk0\r\n",), ("VALUE @@zm1.zk0 0 1\r\nx\r\nEND\r\n",), "a")
    written = as_case(case("any-order", "KV-SEQ-001"), [BOUND, exchange(get), exchange(rows)], cast("Judge", Run()))
    assert written.bind == "m1"
    assert written.steps == (
        Send(("get @@{m1}.{k0}\r\n",), ("VALUE @@{m1}.{k0} 0 1\r\nx\r\nEND\r\n",), "a"),
        Sql("SELECT c1 FROM {t1} WHERE c1 IN ('{k1}')", (("{k1}", "x", 0),)),
    )
