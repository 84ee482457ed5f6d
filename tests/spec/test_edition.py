"""Editions of one profile: Markdown by chapter, JSON, and the changelog between two."""

from __future__ import annotations

import copy
import json
import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

import kvref_conformance.spec
from kvref.cli import main
from kvref.specification import normative, requirements
from kvref_conformance.cases import all_cases
from kvref_conformance.spec import compare, edition, grammar
from kvref_conformance.spec.abnf import Abnf
from kvref_conformance.steps import Send

pytestmark = pytest.mark.nightly

PROFILES = ("kvref", "mysql-8.0", "mysql-5.6", "memcached")
SCHEMA = Path(kvref_conformance.spec.__file__).with_name("edition.schema.json")
# Of what a reader sees: without the targets of links and the anchors that they lead to.
MAX_BYTES = 270_000
UNSEEN = re.compile(r"(?<=\])\([^)]*\)|<a id=\"[^\"]*\"></a>")


def spec(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["spec", *arguments], catch_exceptions=False)


def is_appendix(name: str) -> bool:
    return name == "recordings.md" or name.startswith("exchanges/")


@cache
def pages(profile: str) -> dict[str, str]:
    return dict(edition.pages(profile))


written = cache(edition.as_json)


def made() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(written("memcached"))
    return read


@pytest.mark.parametrize("profile", PROFILES)
def test_an_edition_without_appendices_is_short(profile: str) -> None:
    size = sum(len(UNSEEN.sub("", text).encode()) for name, text in pages(profile).items() if not is_appendix(name))
    assert size < MAX_BYTES


@pytest.mark.parametrize("profile", PROFILES)
def test_an_edition_has_the_requirements_of_its_profile_and_no_other(profile: str) -> None:
    for chapter in requirements.chapters():
        page = pages(profile).get(f"{chapter.name}.md", "")
        for each in chapter.requirements:
            assert (f"</a>**{each.id}** ({each.level}). {each.statement_for(profile)}" in page) == each.applies_to(
                profile
            )


LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]*))?\)")


@pytest.mark.parametrize("profile", PROFILES)
def test_every_link_of_an_edition_leads_to_a_page_of_it_and_to_its_anchor(profile: str) -> None:
    made = pages(profile)
    for name, text in made.items():
        for path, anchor in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            assert target in made, (name, path)
            assert not anchor or f'<a id="{anchor}"></a>' in made[target], (name, path, anchor)


@pytest.mark.parametrize("profile", ["memcached", "mysql-8.0"])
def test_the_json_has_its_schema(profile: str) -> None:
    read = json.loads(written(profile))
    jsonschema.validate(read, json.loads(SCHEMA.read_text(encoding="utf-8")))
    listed = {each["id"] for chapter in read["chapters"] for each in chapter["requirements"]}
    obliged = [each for chapter in requirements.chapters() for each in chapter.requirements]
    assert listed == {each.id for each in obliged if each.applies_to(profile)}
    assert all(chapter["cases"] for chapter in read["chapters"] if chapter["name"] in {"storage", "retrieval"})


def test_the_changelog_names_each_change() -> None:
    old, new = made(), copy.deepcopy(made())
    chapter = new["chapters"][0]
    first, second, third = chapter["requirements"][:3]
    chapter["requirements"].remove(second)
    first["statement"] += " Always."
    third["level"] = "MAY"
    del new["replies"]["CLIENT_ERROR bad data chunk"]
    chapter["cases"][0]["steps"] = []
    new["grammar"]["abnf"] += "\nnew-rule = SP\n"
    new["defaults"]["options"]["separator"] = ";"
    text = compare.changelog(old, new)
    for part in (
        f"## Removed requirements\n\n* **{second['id']}**",
        f"* **{first['id']}**\n  * before:",
        f"* **{third['id']}**: the level was {old['chapters'][0]['requirements'][2]['level']} and is MAY.",
        "* removed reply `CLIENT_ERROR bad data chunk`",
        f"* changed `{chapter['cases'][0]['case']}`",
        "* grammar.abnf: new `` new-rule = SP ``",
        '* defaults.options.separator: "|" is now ";"',
    ):
        assert part in text, part


def test_the_command_writes_an_edition_and_its_changelog(tmp_path: Path) -> None:
    folder, file = tmp_path / "edition", tmp_path / "memcached.json"
    result = spec("--profile", "memcached", "--edition", str(folder), "--json", str(file))
    assert (result.exit_code, result.output) == (0, "")
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")} == pages("memcached").keys()
    assert "Nothing has changed." in spec("--diff", str(file)).output
    assert "# kvref and memcached" in spec("--compare", "memcached").output
    refused = spec("--compare", "x")
    assert refused.exit_code != 0
    assert "no profile 'x'" in refused.output


ID = re.compile(r"KV-[A-Z]+-\d{3}")
# An ID that lacks its area, such as "-050"; not a negative number in a table or an exchange.
PART = re.compile(r"(?:KV-[A-Z]+-\d{3}(?:,| and| or) )-\d{3}\b")


@pytest.mark.parametrize("profile", PROFILES)
def test_each_id_that_a_page_of_an_edition_cites_is_in_the_edition(profile: str) -> None:
    obliged = {each.id for each in requirements.load().values() if each.applies_to(profile)}
    cited = {(name, each) for name, text in pages(profile).items() for each in ID.findall(text)}
    assert {each for each in cited if each[1] not in obliged} == set()
    assert [(name, PART.findall(text)) for name, text in pages(profile).items() if PART.search(text)] == []


@pytest.mark.parametrize("profile", PROFILES)
def test_each_id_that_a_case_or_its_failure_text_cites_is_in_the_edition(profile: str) -> None:
    listed = set(ID.findall("".join(pages(profile).values())))
    for case in all_cases():
        if all(requirements.load()[each].applies_to(profile) for each in case.requirements):
            assert set(case.requirements) <= listed, case.id


# What another profile does, in the pages of one; the recordings and the rest of an exchange are data.
OTHERS = {
    profile: re.compile(rf"`({'|'.join({*PROFILES, 'mysql-*'} - {profile}).replace('*', '[*]')})`")
    for profile in PROFILES
}


@pytest.mark.parametrize("profile", PROFILES)
def test_no_page_of_an_edition_has_a_rule_of_another_profile(profile: str) -> None:
    found = [(name, OTHERS[profile].findall(text)) for name, text in pages(profile).items() if not is_appendix(name)]
    assert [each for each in found if each[1]] == []


@pytest.mark.parametrize("profile", PROFILES)
def test_the_grammar_of_an_edition_accepts_the_same_lines(profile: str) -> None:
    read = Abnf(grammar.of_profile(profile)["abnf"])
    start = normative.table("grammar")["start"][profile]
    for line in lines():
        assert (read.match("line", line) is None) == (grammar.grammar().match(start, line) is None), line
    assert {"line", "request", *grammar.of_profile(profile)["ranges"]} <= read.rules.keys()
    assert not [name for name in read.rules if name.startswith(("plugin-", "memcached-"))]


def lines() -> list[str]:
    sent = ("".join(step.packets) for case in all_cases() for step in case.steps if isinstance(step, Send))
    return sorted({line for text in sent for line in text.split("\r\n")})
