"""The literal cases as JSON: as the schema says, complete, and enough for a reader that is not Python."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from helpers.live import target_or_skip

from kvref import profiles
from kvref.cli import main
from kvref.specification import requirements
from kvref_conformance.cases import all_cases
from kvref_conformance.export import cases as export

pytestmark = pytest.mark.nightly

READER = Path(__file__).with_name("literal_cases.pl")


def exported(profile: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(export.as_json(requirements.load(), profile))
    return made


def case(made: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [each for each in made["cases"] if each["case"] == name]
    return found


@pytest.mark.parametrize("profile", profiles.names())
def test_every_case_that_applies_is_there_as_the_schema_says(profile: str) -> None:
    made = exported(profile)
    schema = json.loads(files("kvref_conformance.steps").joinpath("schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(made)
    facts, catalogue = profiles.load(profile), requirements.load()
    applies = {
        each.id
        for each in all_cases()
        if all(catalogue[name].applies_to(profile) for name in each.requirements)
        and (facts.flag("mapping.supported") or not each.needs_mappings())
    }
    generated = {each.id for each in all_cases() if not each.steps}
    assert {each["case"] for each in made["cases"]} == applies - generated
    # Every name is replaced; what stays in braces is recalled or caught.
    assert not [each["case"] for each in made["cases"] if "{k}" in json.dumps(each)]


@pytest.mark.parametrize(
    "change", [{"packets": []}, {"allow": []}, {"patience": "long"}, {"odd": 1}, {"frames": ["get"]}]
)
def test_the_schema_refuses(change: dict[str, Any]) -> None:
    made = exported("memcached")
    made["cases"] = [case(made, "set-new")]
    made["cases"][0]["steps"][0]["send"].update(change)
    schema = json.loads(files("kvref_conformance.steps").joinpath("schema.json").read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(made)


def test_names_lengths_and_holes() -> None:
    made = exported("mysql-8.0")
    word = case(made, "cas-word")
    assert (word["needs"], word["bind"]) == (["mappings", "sql"], "kvm1")
    gets, _, cas, _ = [step["send"] for step in word["steps"][-4:]]
    key = gets["packets"][0][0].split(".")[1].removesuffix("\r\n")
    assert gets["allow"] == [[f"VALUE @@kvm2.{key} 0 1 ", {"hole": "cas", "name": "a"}, "\r\n2\r\nEND\r\n"]]
    assert cas["packets"] == [[f"cas @@kvm2.{key} 0 0 1 ", {"recall": "a"}, "\r\n+\r\n"]]
    switch = case(made, "switch-word-answer")["steps"][0]["send"]
    assert switch["allow"] == [["VALUE @@kvm2 0 12\r\ntest/kvc_two\r\nEND\r\n"]]


def test_holes_of_frames_are_holes_in_frames_only() -> None:
    usage = case(exported("memcached"), "delete-word-ten")["steps"][-2]["send"]["allow"]
    assert [text for text in usage if len(text) == 1 and "<key>" in text[0]] == usage
    frames = [step["send"] for each in exported("kvref")["cases"] for step in each["steps"] if "send" in step]
    holes = [part for send in frames for text in send["allow"] for part in text if isinstance(part, dict)]
    assert {"hole": "value"} in holes


def test_frames_have_their_bytes() -> None:
    step = case(exported("memcached"), "bin-set")["steps"][0]["send"]
    assert step["frames"][0].startswith("set key=c")
    (packet,) = step["hex"]
    assert packet.startswith("8001")


@pytest.mark.parametrize(("profile", "text"), [("kvref", "Not stored"), ("memcached", "Not stored.")])
def test_answers_are_those_of_the_profile(profile: str, text: str) -> None:
    allowed = case(exported(profile), "bin-append-missing")["steps"][0]["send"]["allow"]
    assert allowed == [[f'append 0x05 "{text}"']]


def test_deviations_are_reported() -> None:
    assert [each["case"] for each in exported("mysql-8.0")["cases"] if "deviates" in each]
    assert not [each["case"] for each in exported("kvref")["cases"] if "deviates" in each]


def test_the_command_writes_a_selection(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    done = CliRunner().invoke(main, ["spec", "--cases", str(file), "--chapter", "touch", "--profile", "memcached"])
    assert done.exit_code == 0, done.output
    made = json.loads(file.read_text())
    assert {name.split("-")[1] for name in made["requirements"]} == {"TOUCH"}
    assert made["cases"]


@pytest.mark.live
def test_a_reader_in_perl_judges_real_endpoints(tmp_path: Path) -> None:
    """Native memcached holds all that needs nothing else, and the reader sees an answer that is not allowed."""
    assert shutil.which("perl")
    file = tmp_path / "cases.json"
    file.write_text(export.as_json(requirements.load(), "memcached"))
    with target_or_skip("memcached") as target:
        host, port = target.address.rsplit(":", 1)
        run = ["perl", str(READER), str(file), host, port]
        shown = subprocess.run(run, capture_output=True, text=True, timeout=240, check=True).stdout.splitlines()
        assert not [line for line in shown if line.startswith("not ok")]
        not_skipped = [line for line in shown if "# SKIP" not in line]
        assert len(not_skipped) > 250
        text = json.loads(file.read_text())
        text["cases"] = [case(text, "set-new")]
        text["cases"][0]["steps"][0]["send"] |= {"allow": [["EXISTS\r\n"]], "patience": 1}
        file.write_text(json.dumps(text))
        (line,) = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
        assert line.startswith("not ok set-new KV-CORE-001: [")
        assert 'got ["STORED' in line
