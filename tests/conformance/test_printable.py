"""What an endpoint or a report says changes no terminal, ends no fence and makes no tag, in any output of the judge."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from conformance.test_matrix import verdict, write

from kvref import profiles
from kvref.cli import main
from kvref.errors import printable
from kvref_conformance.endpoints.endpoint import Endpoint
from kvref_conformance.endpoints.probe import EVERY, as_toml
from kvref_conformance.judging.verdict import FAILS
from kvref_conformance.reports import column, forms, markdown, matrix_pages
from kvref_conformance.reports.grid import grid
from kvref_conformance.reports.pages import environment
from kvref_conformance.reports.record import Record

EVIL = "\x1b[2J\x1b]0;title\x07\x9b31m<script>alert(1)</script>\u202e\r"


def is_safe(text: str) -> bool:
    """Return whether a text has printable characters, tabs and line ends only."""
    return text.replace("\n", "").replace("\t", "").isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain \u00e4", "plain \u00e4"), ("\x1b[2J", "\\x1b[2J"), ("\x9b", "\\x9b"), ("a\nb\0", "a\\nb\\x00")],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable("a\nb\x1b", keep="\n") == "a\nb\\x1b"


def test_the_version_of_an_endpoint() -> None:
    line = f"VERSION {EVIL}\r\n".encode("latin-1", "replace")
    assert is_safe(Endpoint(("127.0.0.1", 1), line, profiles.load("kvref"), "").version)


def test_a_profile_file_is_toml() -> None:
    written = as_toml("memcached", EVIL + "\nprofile = 'x'", EVERY)
    assert is_safe(written)
    assert tomllib.loads(written)["profile"] == "memcached"


def test_the_forms_of_a_matrix(tmp_path: Path) -> None:
    failed = verdict("set-new", "KV-CORE-001", FAILS)
    for name in ("a", "b"):
        write(tmp_path / name, failed, complaints=(EVIL, "~~~~\n# heading"), version=EVIL)
    made = grid([column.read(tmp_path / name) for name in ("a", "b")])
    texts = [markdown.summary(made), markdown.upgrade(made)]
    pages = matrix_pages.html(Record.of(made)).values()
    for text in (*texts, forms.as_junit(made), *map(forms.badge, made.columns), *pages):
        assert is_safe(text)
    for text in texts:
        assert "<script" not in text
        assert "\n# heading" not in text
    shown = CliRunner().invoke(main, ["matrix", str(tmp_path / "a"), str(tmp_path / "b")])
    assert shown.exit_code == 0
    assert "\x1b" not in shown.output
    assert "\x9b" not in shown.output


def test_no_line_ends_a_fence() -> None:
    lines = markdown.fenced(["~~~~", "  ~~~~~~ x", EVIL])
    assert lines[0] == "~~~~~~~text"
    assert lines[-1] == "~~~~~~~"
    assert all(map(is_safe, lines))


def test_pages_show_no_control_characters() -> None:
    shown = environment().from_string("{{ said }}").render(said=EVIL)
    assert is_safe(shown)
    assert "<script" not in shown
