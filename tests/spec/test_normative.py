"""The normative tables agree with the server, the cases, the models and the statements."""

from __future__ import annotations

import ast
import re
import sqlite3
from pathlib import Path

import pytest

import kvref_conformance
from generators import statistics
from kvref import profiles
from kvref.collations.charsets import UTF8MB4
from kvref.engine.mapping import Kind
from kvref.server.settings import SETTINGS
from kvref.specification import normative, requirements
from kvref.storage.config.column_types import column_of
from kvref_conformance.cases import all_cases
from kvref_conformance.spec import edition, replies
from kvref_conformance.spec.normative import chapters, diagram

ROOT = Path(__file__).parents[2]
MODELS = Path(kvref_conformance.__file__).parent / "model"
# A text in a statement that is an error reply; TEXT and <text> are free parts.
IN_STATEMENT = re.compile(r"`((?:CLIENT_ERROR|SERVER_ERROR|ERROR)\b[^`]*)`")
FREE = re.compile(r"\bTEXT\b|<text>")


def test_no_case_demands_a_reply_that_the_tables_do_not_have() -> None:
    found = {
        line: case.id for case in all_cases() for line in replies.demanded(case) if line and not replies.stated(line)
    }
    assert found == {}


def test_no_case_demands_a_status_that_the_tables_do_not_have() -> None:
    found = [
        (case.id, *each)
        for case in all_cases()
        for each in replies.statuses(case)
        if not replies.status_is_stated(*each)
    ]
    assert found == []


def test_a_reply_is_demanded_by_a_requirement_or_marked_as_free() -> None:
    demanded = replies.demanding()
    rows = {text: row for text, row in normative.table("replies").items() if not text.startswith("0x")}
    assert [text for text, row in rows.items() if (text in demanded) == bool(row.get("own"))] == []
    assert [text for text in normative.table("success") if text != "text" and text not in demanded] == []


def test_no_statement_has_an_error_reply_that_the_tables_do_not_have() -> None:
    found = [
        (each.id, text)
        for each in requirements.load().values()
        for text in IN_STATEMENT.findall(each.statement)
        if text not in replies.KINDS and not replies.stated(FREE.sub("<text>", text))
    ]
    assert found == []


def test_no_model_replies_with_an_error_that_the_tables_do_not_have() -> None:
    texts = [
        (path.name, line)
        for path in MODELS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for line in node.value.split("\r\n")
        if line.startswith(replies.KINDS) and line not in replies.KINDS
    ]
    assert len(texts) >= 3
    assert [each for each in texts if not replies.stated(each[1])] == []


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("STORED", "STORED"),
        ("CLIENT_ERROR key too long for column c1 (32)", "CLIENT_ERROR key too long for column {column} ({width})"),
        ("VALUE {k} 0 <number> <cas>", "VALUE {key} {flags} {length} {cas}"),
    ],
)
def test_a_line_is_found_by_its_free_parts(line: str, row: str) -> None:
    assert row in replies.stated(line)


@pytest.mark.parametrize("line", ["STORE", "CLIENT_ERROR key too long", "SERVER_ERROR of some kind", "SAVED"])
def test_a_line_that_no_table_has_is_not_stated(line: str) -> None:
    assert replies.stated(line) == []


def test_the_rows_of_stats_are_those_of_the_server() -> None:
    rows = normative.table("statistics")
    assert list(rows) == statistics.names(beyond_plugin=True)
    for profile, beyond in (("kvref", True), ("mysql-8.0", False), ("mysql-5.6", False)):
        assert [name for name in rows if profile in rows[name]["profiles"]] == statistics.names(beyond_plugin=beyond)


def test_the_defaults_are_those_of_the_server_and_of_its_scripts() -> None:
    reported = normative.of_profile("defaults", "kvref")
    plugin = {
        name: each.default for name, each in SETTINGS.items() if name.startswith(("daemon_memcached_", "innodb_"))
    }
    assert reported["settings"] == plugin
    own = {name: row["default"] for name, row in reported["own"].items()}
    assert own == {name: SETTINGS[name].default for name in own}
    (scripts,) = [each["files"] for each in normative.table("data_model")["scripts"] if each["title"] == "SQLite"]
    connection = sqlite3.connect(":memory:")
    connection.executescript("".join(map(normative.script, scripts)))
    for table, row in reported["rows"].items():
        assert connection.execute(f"SELECT * FROM {table}").fetchall() == [tuple(row)]
    assert dict(connection.execute("SELECT name, value FROM config_options").fetchall()) == reported["options"]
    connection.close()


@pytest.mark.parametrize("row", normative.table("data_model")["numbers"], ids=lambda row: str(row["type"]))
@pytest.mark.parametrize("sign", ["signed", "unsigned"])
def test_the_ranges_of_numbers_are_those_of_the_server(row: dict[str, list[int]], sign: str) -> None:
    declared = f"{row['type']}{' UNSIGNED' if sign == 'unsigned' else ''}"
    column = column_of("c", declared, UTF8MB4.name, profiles.load("kvref"))
    assert column.kind is Kind.INTEGER
    assert [column.low, column.high] == row[sign]


def test_every_transition_is_in_its_diagram() -> None:
    for machine in normative.table("states")["machine"]:
        states = {machine["start"]} | {row["to"] for row in machine["transitions"]}
        assert {row["from"] for row in machine["transitions"]} <= states, "a state that nothing leads to"
        assert diagram(machine).count(" --> ") == len(machine["transitions"]) + 1


@pytest.mark.parametrize("machine", normative.table("states")["machine"], ids=lambda machine: str(machine["name"]))
def test_every_transition_is_made_by_a_case_or_a_test(machine: dict[str, list[dict[str, list[str]]]]) -> None:
    cases = {case.id for case in all_cases()}
    for row in machine["transitions"]:
        assert row["proof"]
        for name in row["proof"]:
            path, _, function = name.partition("::")
            assert name in cases or f"def {function}(" in (ROOT / path).read_text(encoding="utf-8")


def test_every_chapter_has_a_text() -> None:
    names = [each.name for each in chapters()]
    assert names == [
        "front_matter",
        "lifecycles",
        "data_model",
        "defaults",
        "grammar",
        "binary",
        "states",
        "replies",
        "statistics",
    ]
    assert all(len(each.body) > 500 for each in chapters())


# Words in backticks that are settings of kvref: each that a requirement or a table names has its default in an edition.
SETTING = re.compile(r"`([a-z]+_[a-z_]+|maxconns)`")


def test_every_setting_that_an_edition_names_is_defined() -> None:
    reported = normative.of_profile("defaults", "kvref")
    texts = [each.statement for each in requirements.load().values() if each.applies_to("kvref")]
    texts += [each.body for each in chapters("kvref") if each.name != "statistics"]
    named = {name for text in texts for name in SETTING.findall(text) if name in SETTINGS}
    assert named <= reported["settings"].keys() | reported["own"].keys()


@pytest.mark.parametrize("each", normative.table("lifecycles")["lifecycle"], ids=lambda each: str(each["title"]))
def test_every_state_of_a_lifecycle_is_reached(each: dict[str, list[list[str]]]) -> None:
    reached = {"[*]", *(new for _, new, _ in each["edges"])}
    assert {old for old, _, _ in each["edges"]} <= reached


def test_every_sign_of_the_notation_is_in_an_exchange() -> None:
    shown = "".join(text for name, text in edition.pages("kvref").items())
    signs = [
        sign
        for row in normative.table("front_matter")["notation"]["part"]
        for sign in re.findall(r"`([^`]+)`", row["sign"])
    ]
    assert [sign for sign in signs if shown.count(sign) < 2] == []
