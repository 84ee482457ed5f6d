"""`kvref spec`: one requirement, a selection, the register, the coverage, and errors of usage."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kvref.cli import main
from kvref.specification import requirements


def spec(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["spec", *arguments], catch_exceptions=False)


def shown(*arguments: str) -> str:
    result = spec(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_one_requirement_is_shown_with_everything() -> None:
    text = shown("kv-arith-007")
    for part in (
        "KV-ARITH-007  MUST  missing key",
        "If the key is missing, `incr` and `decr` MUST reply `NOT_FOUND` and store",
        "memcached protocol.txt",
        "core:verb-025",
        "incr-missing, decr-missing",
        r"incr zz 1\r\n",
        r"NOT_FOUND\r\n",
    ):
        assert part in text, part
    assert re.search(r"mysql-8\.0 +deviates: the rest of the line", shown("KV-PARSE-014"))


def test_a_crash_is_shown_with_whose_it_is() -> None:
    assert re.search(r"crash +mysql-5\.6: a get or storage verb with such a word ends the server", shown("KV-MAP-042"))


def test_without_arguments_the_chapters_are_counted() -> None:
    text = shown()
    assert all(name in text for name in requirements.CHAPTERS)
    assert str(sum(each.level == "MUST" for each in requirements.load().values())) in text


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("--chapter", "bind"), lambda each: each.chapter == "bind"),
        (("--chapter", "FLUSH"), lambda each: each.area == "FLUSH"),
        (("--chapter", "bind", "--chapter", "ranges"), lambda each: each.chapter in {"bind", "ranges"}),
        (("--profile", "memcached"), lambda each: each.applies_to("memcached")),
        (("--level", "quirk"), lambda each: each.level == "QUIRK"),
        (("--level", "MUST", "--chapter", "ranges", "--profile", "mysql-5.6"), lambda each: False),
    ],
)
def test_a_selection(arguments: tuple[str, ...], wanted: object) -> None:
    assert callable(wanted)
    ids = [line.split()[0] for line in shown("--list", *arguments).splitlines() if line]
    assert ids == [each.id for each in requirements.load().values() if wanted(each)]


def test_the_register_of_contradictions_holds_every_quirk() -> None:
    text = shown("--contradictions")
    for each in requirements.load().values():
        assert (each.id in text) == (each.level == "QUIRK"), each.id


def test_markdown_has_an_anchor_for_each_requirement() -> None:
    text = shown("--markdown", "--chapter", "bind")
    assert '### <a id="KV-BIND-001"></a>KV-BIND-001 MUST: bind' in text
    assert "VALUE k" in text
    assert "KV-MAP-001" not in text


def test_the_page_goes_to_a_file_or_to_standard_output(tmp_path: Path) -> None:
    path = tmp_path / "spec.html"
    assert shown("--html", str(path), "--chapter", "bind") == ""
    assert path.read_text(encoding="utf-8") == shown("--html", "-", "--chapter", "bind")


def test_the_coverage_is_a_line_a_requirement() -> None:
    lines = shown("--coverage").splitlines()
    assert sum(line.startswith("KV-") for line in lines) == len(requirements.load())
    assert lines[0].startswith(f"# {len(requirements.load())} requirements: ")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("KV-MAP-999",), "no requirement 'KV-MAP-999', did you mean 'KV-MAP-0"),
        (("--chapter", "nope"), "no chapter or area 'nope': choose one of storage, "),
        (("--profile", "oracle"), "no profile 'oracle': choose one of kvref, "),
        (("--html", "/nowhere/at/all/spec.html"), "cannot write /nowhere/at/all/spec.html: "),
    ],
)
def test_what_is_not_there_is_named_with_what_is(arguments: tuple[str, ...], complaint: str) -> None:
    result = spec(*arguments)
    assert result.exit_code == 2
    assert complaint in result.output
