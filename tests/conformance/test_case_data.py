"""Cases are data: what a file of a chapter means."""

from __future__ import annotations

import pytest

from kvref.errors import SuiteError
from kvref_conformance.case import Case
from kvref_conformance.cases.chapter import read

IDS = ["KV-CORE-001", "KV-CORE-002"]


def cases(text: str) -> list[Case]:
    return list(read("storage", text, IDS))


def steps(text: str, before: str = "") -> tuple[object, ...]:
    (made,) = cases(f"{before}\n[KV-CORE-001]\nx = [{text}]\n")
    return made.steps


@pytest.mark.parametrize(
    ("written", "received"),
    [
        ("x = [", "cases/storage.toml: "),
        ("[KV-CORE-009]\nx = []", "'KV-CORE-009', did you mean"),
        ("[shared.table]\nx = 1", "unknown kind of what is shared 'table', did you mean 'tables'"),
        ('protocol = "udp"', "unknown protocol 'udp': choose one of text, binary"),
        ("KV-CORE-001 = 1", "KV-CORE-001: write a table of cases"),
        ("[KV-CORE-001]\nx = 1", "KV-CORE-001, x: a case is a list"),
        ("[KV-CORE-001]\nx = []", "x: no steps"),
        ('[KV-CORE-001]\nx = [{ tables = "a" }, 1]', "unknown 'tables': a condition is one of also, table"),
        ('[KV-CORE-001]\nx = [{ bind = 1 }, "reload"]', "condition.bind: 1 is not str"),
        ('[KV-CORE-001]\nx = [{ bind = "a" }, { bind = "a" }, "reload"]', "bind twice"),
        ('[KV-CORE-001]\nx = [{ engine = "oracle" }, "reload"]', "unknown engine 'oracle'"),
        ('[KV-CORE-001]\nx = [{ table = "usual" }, "reload"]', "unknown name of tables 'usual'"),
        ('[KV-CORE-001]\nx = [{ table = { columns = "a", width = "b" } }, "reload"]', "table: unknown 'width'"),
        ('[KV-CORE-001]\nx = [{ also = ["KV-CORE-999"] }, "reload"]', "unknown requirement 'KV-CORE-999'"),
        ('[KV-CORE-001]\nx = [{ matrix = { a = 1 } }, "reload"]', "is not a matrix"),
        ('[KV-CORE-001]\nx = [{ matrix = { "a b" = [["1"]] } }, "reload"]', "write 2 values, for a, b"),
        ('[KV-CORE-001]\nx = [{ matrix = { a = [{ from = 1 }] } }, "reload"]', "is not a range"),
        ('[KV-CORE-001]\nx = [{ texts.a = { each.n = [1] } }, "reload"]', "is not a text"),
        ('[KV-CORE-001]\n"x-${a}" = ["reload"]', "${a} is neither in the matrix nor in texts"),
        ('[KV-CORE-001]\nx = [["get ${a}", "END"]]', "${a} is neither in the matrix nor in texts"),
        ('[KV-CORE-001]\nx = [["get", "${a}"]]', "${a} is neither in the matrix nor in texts"),
        ('[KV-CORE-001]\nx = ["reloads"]', "is not [request, reply], a table or a word, did you mean 'reload'"),
        ('[KV-CORE-001]\nx = [["get"]]', "write the replies that are allowed"),
        ('[KV-CORE-001]\nx = [["get", 1.5]]', "1.5 is not a reply"),
        ('[KV-CORE-001]\nx = [["get", "END", { at = "b" }]]', "unknown 'at'"),
        ('[KV-CORE-001]\nx = [["get", "END", { patience = "b" }]]', "patience: 'b' is not float"),
        ('[KV-CORE-001]\nx = [["get", "END", { times = "b" }]]', "times: 'b' is not a number"),
        ('[KV-CORE-001]\nx = [["get", { by = "cache.text", a = "b" }]]', "unknown fact 'cache.text'"),
        ('[KV-CORE-001]\nx = [["get", { by = "binary.texts", a = "b" }]]', "unknown value of binary.texts 'a'"),
        ('[KV-CORE-001]\nx = [["get", "a"], { on = "b" }]', "a step that is a table has one of sql"),
        ('[KV-CORE-001]\nx = [{ sql = "SELECT 1" }]', "a SELECT, and no other statement, has `rows`"),
        ('[KV-CORE-001]\nx = [{ steps = ["reload"], on = "b" }]', "unknown field 'on'"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place_and_the_fix(written: str, received: str) -> None:
    with pytest.raises(SuiteError) as raised:
        cases(written)
    assert received in str(raised.value)
    assert str(raised.value).startswith("cases/storage.toml")
    assert "\n" not in str(raised.value) or "TOML" in str(raised.value)
