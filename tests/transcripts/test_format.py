"""The files: every line is what the published schema says, and what is read is what was written."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from kvref.errors import SuiteError
from kvref_conformance import corpus
from kvref_conformance.corpus.conversation import from_json, to_json
from kvref_conformance.corpus.detect import unexplained
from kvref_conformance.steps import Crowd, Disconnect, Pause, StartSql

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = files(corpus)
SCHEMA = corpus.schema()
PLUGINS = {"5.6.14", "8.0.33"}
LINE = {"id": "x-001", "group": "x", "title": "a title", "steps": [{"send": {"on": "a", "packets": ["get AA\r\n"]}}]}


def lines(name: str) -> list[dict]:
    return [json.loads(line) for line in FOLDER.joinpath(f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", ["core", *(pytest.param(name, marks=pytest.mark.nightly) for name in corpus.SETS[1:])])
def test_every_line_is_as_the_schema_says(name: str) -> None:
    validator = Draft202012Validator(SCHEMA)
    faults = [(line["id"], fault.json_path) for line in lines(name) for fault in validator.iter_errors(line)]
    assert not faults


@pytest.mark.parametrize("name", corpus.SETS)
def test_what_is_read_is_what_was_written(name: str) -> None:
    assert [to_json(each) for each in corpus.load(name).values()] == lines(name)


# Features that 5.6 lacks: a set-up with them cannot be run there.
NOT_IN_5_6 = re.compile(r"\bjson\b|\bAS \(concat|utf8mb4_0900")


# Those of `more` that only 8.0 answered are on subjects that 5.6 answers with uninitialised memory or not at all.
@pytest.mark.parametrize("name", corpus.SETS)
def test_every_conversation_has_the_answers_of_both_plugins(name: str) -> None:
    for conversation in corpus.load(name).values():
        one = name == "more" or NOT_IN_5_6.search(" ".join(conversation.sql))
        plugins = conversation.versions() & PLUGINS
        assert plugins == PLUGINS or (one and plugins == {"8.0.33"}), conversation.id
        for number, step in enumerate(conversation.steps, 1):
            match step.step:
                case Pause() | Disconnect(how="close" | "reset") | StartSql() | Crowd(close=True):
                    assert not step.got, (conversation.id, number)
                case _:
                    assert step.got.keys() - {"memcached-1.6.18"} == plugins, (conversation.id, number)


def test_what_no_rule_fixes_is_rare() -> None:
    """Answers with uninitialised memory or a race in them, against all answers."""
    counts: Counter[bool] = Counter(
        any(unexplained(answer))
        for name in corpus.SETS
        for conversation in corpus.load(name).values()
        for step in conversation.steps
        for answer in step.got.values()
    )
    assert counts.total() > 10_000
    assert counts[True] < counts.total() / 50


def test_a_conversation_is_found_by_its_citation() -> None:
    assert corpus.find("core:map-001").group == "map"
    with pytest.raises(SuiteError, match="no conversation 'core:map-999'"):
        corpus.find("core:map-999")
    with pytest.raises(SuiteError, match="no set of transcripts 'cores'"):
        corpus.find("cores:map-001")


def test_other_faults_of_a_file_are_named(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps(LINE) + "\n\n" + json.dumps(LINE) + "\n")
    with pytest.raises(SuiteError, match=r"x.jsonl, line 3: duplicate id x-001"):
        corpus.read(file)
    file.write_text("{\n")
    with pytest.raises(SuiteError, match=r"x.jsonl, line 1: Expecting"):
        corpus.read(file)
    file.write_text("[]\n")
    with pytest.raises(SuiteError, match=r"x.jsonl, line 1:"):
        corpus.read(file)
    with pytest.raises(SuiteError, match="cannot be read"):
        corpus.read(tmp_path / "nothing.jsonl")


def test_written_and_read_again(tmp_path: Path) -> None:
    conversation = from_json(
        LINE | {"options": ["--x=1"], "steps": [{"sql start": {"on": "s", "statement": "SELECT 1"}}]}
    )
    corpus.write(tmp_path / "x.jsonl", [conversation])
    assert corpus.read(tmp_path / "x.jsonl") == {"x-001": conversation}
