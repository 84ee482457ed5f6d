"""What a run leaves: the lines, the page (opened in a browser) and the exit code."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest
from helpers import browser
from helpers.reports import HEADER

from kvref.specification import requirements
from kvref_conformance.endpoints.probe import EVERY
from kvref_conformance.judging.conversation import Exchange
from kvref_conformance.judging.verdict import (
    DEVIATES,
    FAILS,
    HOLDS,
    NOT_RUN,
    SUITE_ERROR,
    UNSUPPORTED,
    VERDICTS,
    Tally,
    Verdict,
)
from kvref_conformance.reports import html, jsonl
from kvref_conformance.reports.header import Header

ODD = Exchange("a", "get x\r\n", ("END\r\n",), "VALUE x 0 1\r\n\xff<b>\r\nEND\r\n", written=("get {k}\r\n", ""))


def tally(*words: str, complaints: tuple[str, ...] = ()) -> Tally:
    verdicts = [
        Verdict(
            f"case-{n}", "bind" if n % 2 else "storage", ("KV-CORE-041",), word, "why", 0.5, (ODD,), f"text of {word}"
        )
        for n, word in enumerate(words)
    ]
    return Tally(verdicts, list(complaints))


@pytest.mark.parametrize(
    ("words", "complaints", "code"),
    [
        ((HOLDS,), (), 0),
        ((HOLDS, DEVIATES, UNSUPPORTED, NOT_RUN), (), 0),
        ((HOLDS, FAILS), (), 1),
        ((HOLDS,), ("a row matches no case",), 1),
        ((HOLDS, FAILS, SUITE_ERROR), (), 2),
        ((UNSUPPORTED, NOT_RUN), (), 2),
        ((), (), 2),
    ],
)
def test_the_exit_code_follows_from_the_verdicts(
    words: tuple[str, ...], complaints: tuple[str, ...], code: int
) -> None:
    assert tally(*words, complaints=complaints).exit_code() == code


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_lines_are_header_verdicts_footer(tmp_path: Path) -> None:
    path = tmp_path / "report.jsonl"
    jsonl.write(path, HEADER, tally(HOLDS, FAILS, complaints=("odd",)))
    header, holds, fails, footer = lines_of(path)
    assert header == {
        "kind": "header",
        "format": 1,
        "suite": "0.1.0",
        "endpoint": "127.0.0.1:1",
        "version": "9.9.9",
        "profile": "kvref",
        "profile_reason": "as asked for",
        "sql": None,
        "database": None,
        "level": "must",
        "features": {"touch": True, "meta": False},
        "catalogue": "00",
        "seed": 7,
        "examples": 60,
        "platform": "here",
        "started": "2026-01-01T00:00:00Z",
    }
    common = {"kind": "verdict", "requirements": ["KV-CORE-041"], "reason": "why", "duration": 0.5}
    reply = [
        {
            "on": "a",
            "sent": "get x\r\n",
            "allowed": ["END\r\n"],
            "got": "VALUE x 0 1\r\n\xff<b>\r\nEND\r\n",
            "note": "",
            "written": ["get {k}\r\n", ""],
        }
    ]
    assert holds == {**common, "case": "case-0", "chapter": "storage", "verdict": "holds", "conversation": reply}
    assert fails == {
        **common,
        "case": "case-1",
        "chapter": "bind",
        "verdict": "fails",
        "text": "text of fails",
        "conversation": reply,
    }
    assert footer["totals"] == dict.fromkeys(VERDICTS, 0) | {"holds": 1, "fails": 1}
    assert (footer["complaints"], footer["exit_code"]) == (["odd"], 1)


def test_a_password_is_not_reported() -> None:
    class Anywhere:
        where = "h:1"
        version = "1"
        reason = "as asked for"

        class profile:  # noqa: N801 - a stub of the attribute
            name = "kvref"

        features = EVERY

    options = Namespace(sql="mysql://root:secret@h:3306/", level="must", seed=1, examples=1)
    header = Header.of(Anywhere(), "MySQL 8.0.33", options)  # type: ignore[arg-type]
    assert header.sql == "mysql://root:***@h:3306/"


def test_the_page_opens_in_a_browser(chromium: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    html.write(page, HEADER, tally(HOLDS, FAILS, DEVIATES, UNSUPPORTED, complaints=("odd <b>",)))
    document = browser.opened(chromium, page, tmp_path)
    assert ">4 of 4 cases</output>" in document
    assert "does not conform: 1 holds, 1 deviates, 1 fails, 1 unsupported" in document
    assert r"VALUE x 0 1\r\n\xff&lt;b&gt;\r\nEND\r\n" in document
    assert "odd &lt;b&gt;" in document
    assert document.count("<details") == 5  # the unsupported case is in its own closed group
    assert re.search(r'<details class="unsupported">\s*<summary>1 unsupported</summary>', document)
    assert document.index('id="failures"') < document.index('id="storage"')
    assert document.count(" open=") == 1
    assert escape(requirements.load()["KV-CORE-041"].statement) in document


def test_a_failure_has_its_first_wrong_byte_marked_and_commands_to_copy(tmp_path: Path) -> None:
    wrong = Exchange("a", "get x\r\n", ("VALUE x 0 1\r\n<b\r\nEND\r\n",), "VALUE x 0 1\r\n<i\r\nEND\r\n", passed=False)
    text = "text\nagain: kvref replay out/a.json 127.0.0.1:1\nby hand: printf 'get x' | nc 127.0.0.1 1"
    page = tmp_path / "report.html"
    html.write(page, HEADER, Tally([Verdict("a", "bind", ("KV-CORE-041",), FAILS, "why", 0.5, (wrong,), text)]))
    document = page.read_text()
    assert r"VALUE x 0 1\r\n&lt;<mark>i</mark>\r\nEND\r\n" in document
    assert '<pre class="command">kvref replay out/a.json 127.0.0.1:1</pre>' in document
    assert '<pre class="command">printf &#39;get x&#39; | nc 127.0.0.1 1</pre>' in document
    cut = replace(wrong, got="VALUE x 0 1\r\n")
    html.write(page, HEADER, Tally([Verdict("a", "bind", ("KV-CORE-041",), FAILS, "why", 0.5, (cut,), text)]))
    assert r"VALUE x 0 1\r\n<mark>(end)</mark>" in page.read_text()


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    html.write(page, HEADER, tally(HOLDS))
    assert not re.findall(r"""(?:src|href)=["'](?!#)|url\(|@import|https?://""", page.read_text())
