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
from helpers.live import target_or_skip

from kvref import profiles
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
