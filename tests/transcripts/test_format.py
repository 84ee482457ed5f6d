"""The files: every line is what the published schema says, and what is read is what was written."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from kvref_conformance import corpus
from kvref_conformance.corpus.conversation import to_json
from kvref_conformance.corpus.detect import unexplained
from kvref_conformance.steps import Crowd, Disconnect, Pause, StartSql

if TYPE_CHECKING:
    pass

FOLDER = files(corpus)
SCHEMA = corpus.schema()
PLUGINS = {"5.6.14", "8.0.33"}


def lines(name: str) -> list[dict]:
    return [json.loads(line) for line in FOLDER.joinpath(f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


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
