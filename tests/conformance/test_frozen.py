"""Profile files and replay files: what is found is written, and what is written is demanded."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from helpers.faulty import Kvref, judged, serving, words

from kvref import profiles
from kvref.profiles import Profile
from kvref_conformance.cases import all_cases
from kvref_conformance.judging.verdict import FAILS, Verdict
from kvref_conformance.steps import AwaitReply, By, Eventually, Send, Sql, Step
from kvref_conformance.triage import replay_file

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("profile", profiles.names())
def test_every_literal_case_survives_its_replay_file(profile: str, tmp_path: Path) -> None:
    """The file is as the schema says, and is read as the case that was written, whatever its profile decides."""
    schema = json.loads(files("kvref_conformance.steps").joinpath("schema.json").read_text())
    validator = jsonschema.Draft202012Validator({"$ref": "#/$defs/replay", "$defs": schema["$defs"]})
    facts, path = profiles.load(profile), tmp_path / "failure.json"
    about = {"endpoint": "127.0.0.1:1", "version": "1"}
    cases = [each for each in all_cases() if each.steps]
    decided = [
        each for each in cases if any(isinstance(getattr(_inner(step), "allow", None), By) for step in each.steps)
    ]
    for one in cases if profile == "kvref" else decided:
        text = replay_file.as_json(one, facts, Verdict(one.id, "storage", one.requirements, FAILS), about)
        validator.validate(json.loads(text))
        path.write_text(text)
        again = replay_file.read(path).case
        assert again.steps == tuple(_of(step, facts) for step in one.steps)
        assert replace(again, steps=()) == replace(one, steps=())


def _inner(step: Step) -> Step:
    return step.step if isinstance(step, Eventually) else step


def _of(step: Step, facts: Profile) -> Step:
    if isinstance(step, Eventually):
        inner = _of(step.step, facts)
        assert isinstance(inner, Send | Sql)
        return replace(step, step=inner)
    if isinstance(step, Send | AwaitReply) and isinstance(step.allow, By):
        step = replace(step, allow=step.allow.of(facts))
    return replace(step, packets=("".join(step.packets),)) if isinstance(step, Send) and step.binary else step


def test_a_missing_feature_is_unsupported_and_a_frozen_one_disabled(in_folder: Kvref, tmp_path: Path) -> None:
    with serving() as (address, _):
        plan = in_folder(address, "--dry-run", "--only", "touch", "--only", "set-new")
        assert plan.returncode == 0, plan.stderr
        assert "1 of 2 cases would be tried" in plan.stdout
        assert not (tmp_path / "out").exists()
        frozen = plan.stdout[plan.stdout.index("# What an endpoint") : plan.stdout.index("1 of 2")]
        assert "touch = false # it answers 'ERROR'" in frozen
        shown = in_folder(address, "--profile", "auto", "--only", "touch", "--only", "set-new")
        assert shown.returncode == 0
        assert frozen.rstrip("\n") in shown.stdout
        assert words(tmp_path) == {"set-new": "holds", "touch": "unsupported"}
        assert judged(tmp_path)["touch"]["reason"] == "the probe found no touch: it answers 'ERROR'"
        assert (tmp_path / "out" / "profile.toml").read_text() == frozen.rstrip("\n") + "\n"
        (tmp_path / "mine.toml").write_text(frozen)
        assert in_folder(address, "--profile", "mine.toml", "--only", "touch", "--only", "set-new").returncode == 0
        assert words(tmp_path) == {"set-new": "holds", "touch": "disabled"}
        (tmp_path / "mine.toml").write_text(frozen.replace("touch = false", "touch = true"))
        assert in_folder(address, "--profile", "mine.toml", "--only", "touch").returncode == 1
        assert words(tmp_path) == {"touch": "fails"}


def test_an_endpoint_that_a_probe_ends_is_not_judged(in_folder: Kvref, tmp_path: Path) -> None:
    with serving("touchy") as (address, _):
        done = in_folder(address, "--only", "set-new")
        assert done.returncode == 2
        # touch ends it, and a process that ends may take one connection more.
        assert re.search("cannot connect to probe (gat|meta): ", done.stderr)
        assert "use a profile file without the feature that ends it" in done.stderr
    with serving("touchy") as (address, _):
        (tmp_path / "mine.toml").write_text(
            'profile = "memcached"\n[features]\ntouch = false\ngat = false\nmeta = false\n'
        )
        assert in_folder(address, "--profile", "mine.toml", "--only", "set-new", "--only", "touch").returncode == 0
        assert words(tmp_path) == {"set-new": "holds", "touch": "disabled"}
