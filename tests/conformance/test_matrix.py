"""Several reports: read strictly, compared without the parts that differ by run, and written in every format."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner
from helpers import browser
from helpers.commands import kvref
from helpers.live import target_or_skip
from helpers.reports import HEADER

from kvref.cli import main
from kvref.errors import SuiteError
from kvref_conformance.cases import all_cases
from kvref_conformance.judging.conversation import Exchange
from kvref_conformance.judging.verdict import (
    DEVIATES,
    FAILS,
    HOLDS,
    NOT_RUN,
    QUIRK,
    UNSUPPORTED,
    Tally,
    Verdict,
)
from kvref_conformance.reports import column, forms, jsonl, matrix_pages, record, standing
from kvref_conformance.reports.grid import ANSWERS, SAME, VERDICTS_DIFFER, Grid, grid, share
from kvref_conformance.reports.record import Record
from kvref_conformance_cli import matrix as cli_matrix

STANDING = Path(__file__).parents[2] / "conformance" / "standing"


def reported(key: str, answer: str, template: str = "", *, fits: bool = True) -> tuple[Exchange, ...]:
    """A set, and a get of it, on a key of one run."""
    sent, got = f"get {key}\r\n", answer.replace("{k}", key)
    return (
        Exchange(
            "a", f"set {key} 0 0 1\r\nx\r\n", ("STORED\r\n",), "STORED\r\n", written=("set {k}\r\n", "STORED\r\n")
        ),
        Exchange(
            "a", sent, ("END\r\n",), got, passed=fits, written=("get {k}\r\n", template or (answer if fits else ""))
        ),
    )


def verdict(case: str, requirement: str, word: str, conversation: tuple[Exchange, ...] = ()) -> Verdict:
    text = f"{requirement}\n<why>\x01 {case}" if word == FAILS else ""
    return Verdict(case, "mapping", (requirement,), word, f"{word} <b>", 0.5, conversation, text)


def write(folder: Path, *verdicts: Verdict, complaints: tuple[str, ...] = (), version: str = "9.9.9") -> Path:
    """Write a report as a run does."""
    folder.mkdir(parents=True)
    tally = Tally(list(verdicts), list(complaints))
    jsonl.write(folder / "report.jsonl", replace(HEADER, version=version, database="SQLite 3"), tally)
    return folder


def chapter_page(made: Grid) -> str:
    """Return the page of the chapter `mapping`, the only one of these reports."""
    pages = matrix_pages.html(Record.of(made))
    assert list(pages) == ["index.html", "mapping.html"]
    return pages["mapping.html"]


SHOWN = "VALUE {k} 0 1\r\nx\r\nEND\r\n"


@pytest.fixture
def three(tmp_path: Path) -> Grid:
    """Three endpoints: `old` and `new` answer one requirement otherwise, `broken` fails another."""
    old = write(
        tmp_path / "old",
        verdict("same", "KV-MAP-001", HOLDS, reported("z11k", SHOWN)),
        verdict("other", "KV-MAP-002", HOLDS, reported("z12k", "END\r\n")),
        verdict("kept", "KV-MAP-003", DEVIATES, reported("z13k", "ERROR\r\n", fits=False)),
        verdict("gone", "KV-MAP-004", HOLDS, reported("z14k", SHOWN)),
    )
    new = write(
        tmp_path / "new",
        verdict("same", "KV-MAP-001", HOLDS, reported("z21fk", SHOWN)),
        verdict("other", "KV-MAP-002", HOLDS, reported("z22fk", SHOWN)),
        verdict("kept", "KV-MAP-003", HOLDS, reported("z23fk", SHOWN)),
        verdict("gone", "KV-MAP-004", UNSUPPORTED),
        version="10.0.0",
    )
    broken = write(
        tmp_path / "broken",
        verdict("same", "KV-MAP-001", HOLDS, reported("z31k", SHOWN)),
        verdict("other", "KV-MAP-002", HOLDS, reported("z32k", SHOWN)),
        verdict("kept", "KV-MAP-003", FAILS, reported("z33k", "\xff<script>\r\n", fits=False)),
        complaints=("a row matches no case",),
    )
    return grid(column.read_all(map(str, (old, new, broken))))


def test_a_requirement_is_what_the_worst_of_its_cases_is(tmp_path: Path) -> None:
    words = (HOLDS, UNSUPPORTED, NOT_RUN, DEVIATES, FAILS)
    for count in range(1, len(words) + 1):
        cases = [verdict(f"c{n}", "KV-MAP-001", word) for n, word in enumerate(words[:count])]
        (row,) = grid([column.read(write(tmp_path / str(count), *cases))]).rows
        assert row.verdicts == {str(count): (HOLDS, HOLDS, NOT_RUN, DEVIATES, FAILS)[count - 1]}
        assert row.cases == tuple(f"c{n}" for n in range(count))


def test_rows_tell_where_endpoints_part(three: Grid) -> None:
    assert [(row.requirement.id, row.parts) for row in three.rows] == [
        ("KV-MAP-001", SAME),
        ("KV-MAP-002", ANSWERS),
        ("KV-MAP-003", VERDICTS_DIFFER),
        ("KV-MAP-004", VERDICTS_DIFFER),
    ]
    # `broken` has no case of the last one.
    assert list(three.rows[3].verdicts.values()) == [HOLDS, UNSUPPORTED, NOT_RUN]


def test_what_an_endpoint_says_cannot_end_the_script_of_the_page(chromium: str, tmp_path: Path) -> None:
    report = write(tmp_path / "odd", verdict("c", "KV-MAP-001", HOLDS, reported("zk", "</script><b>\r\n")))
    file = tmp_path / "matrix.html"
    file.write_text(chapter_page(grid([column.read(report)])))
    assert r"&lt;/script&gt;&lt;b&gt;\r\n" in browser.opened(chromium, file, tmp_path, "#KV-MAP-001")


def shown_conversations(made: Grid, case: str) -> dict[str, list[list[str]]]:
    """Return the conversation that the page shows for each endpoint."""
    data = json.loads(re.findall(r'<script[^>]* id="data">(.*?)</script>', chapter_page(made), re.DOTALL)[0])
    return {
        name: data["conversations"][outcome["conversation"]]
        for outcome in data["cases"][case]
        for name in outcome["endpoints"]
    }


def test_what_a_hole_matches_is_the_endpoints_own(tmp_path: Path) -> None:
    """Counters differ between endpoints that are allowed to show any; cas numbers do between runs of one."""

    def counted(key: str, number: int, cas: int) -> tuple[Exchange, ...]:
        stats = Exchange("a", "stats\r\n", (), f"STAT pid {number}\r\nEND\r\n", written=("stats\r\n", "<stats>END\r\n"))
        got = f"VALUE {key} 0 1 {cas}\r\nx\r\nEND\r\n"
        shown = Exchange(
            "a", f"gets {key}\r\n", (), got, written=("gets {k}\r\n", "VALUE {k} 0 1 <cas>\r\nx\r\nEND\r\n")
        )
        return stats, shown

    answers = {"one": counted("z1k", 1, 10), "same": counted("z2k", 1, 20), "other": counted("z3k", 2, 10)}
    given = [
        column.read(write(tmp_path / name, verdict("c", "KV-MAP-001", HOLDS, steps))) for name, steps in answers.items()
    ]
    conversations = shown_conversations(grid(given), "c")
    assert conversations["one"] == conversations["same"]
    assert [conversations[name][0][2] for name in ("one", "other")] == [
        "STAT pid 1\\r\\nEND\\r\\n",
        "STAT pid 2\\r\\nEND\\r\\n",
    ]


def written(folder: Path, made: Grid) -> Record:
    """Write the verdict files of reports and read them again."""
    folder.mkdir()
    for name, text in record.files(made).items():
        (folder / name).write_text(text, encoding="utf-8")
    return Record.read(folder)


def test_verdict_files_are_compared_with_the_suite(
    three: Grid, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "verdicts"
    read = written(folder, three)
    missing = standing.differences(read)
    requests = {name for case in all_cases() for name in case.requirements}
    assert missing[0].startswith(f"{len(requests) - 4} requirements that the files lack: KV-ARITH-001, ")
    assert missing[1].startswith(f"{len(all_cases())} cases that the files lack: ")
    assert missing[2:] == ["4 cases that the suite lacks: gone, kept, other, same"]
    assert standing.main([str(folder), str(tmp_path / "pending")]) == 1
    listed = (tmp_path / "pending").read_text().splitlines()
    assert listed == standing.pending(read)
    assert len(listed) == len(requests) - 4 + len(all_cases()) + 4
    assert listed[-4:] == ["- gone", "- kept", "- other", "- same"]
    assert (
        "the files are older than the suite, or of other reports: bash .ci/part standing\n" in capsys.readouterr().out
    )
    assert standing.main([str(tmp_path / "none")]) == 2


def test_the_standing_files_lack_only_what_their_list_names() -> None:
    """A requirement or case that is new, renamed or removed is judged by `.ci/part standing`, or listed as pending."""
    read = Record.read(STANDING / "verdicts")
    assert standing.pending(read) == (STANDING / "pending.txt").read_text(encoding="utf-8").splitlines(), (
        "run python -m kvref_conformance.reports.standing conformance/standing/verdicts conformance/standing/pending.txt"
    )


@pytest.mark.nightly
def test_each_page_of_the_standing_files_is_as_small_as_documented() -> None:
    pages = matrix_pages.html(Record.read(STANDING / "verdicts"))
    sizes = {name: len(text.encode()) for name, text in pages.items()}
    assert max(sizes.values()) <= matrix_pages.MAX_BYTES, sizes


def broken_line(line: int, **changed: object) -> Callable[[list[str]], list[str]]:
    def change(lines: list[str]) -> list[str]:
        lines[line] = json.dumps({**json.loads(lines[line]), **changed})
        return lines

    return change


def without(line: int, field: str) -> Callable[[list[str]], list[str]]:
    def change(lines: list[str]) -> list[str]:
        entry = json.loads(lines[line])
        del entry[field]
        lines[line] = json.dumps(entry)
        return lines

    return change


@pytest.mark.parametrize(
    ("change", "reply"),
    [
        (lambda lines: [], "the file is empty"),
        (lambda lines: lines[:-1], "the report was cut off: line 2, the last one, is not a footer"),
        (lambda lines: [*lines[:-1], lines[-1][:20]], "not a whole report: line 3: "),
        (lambda lines: lines[1:], "not a report: line 1 is not a header but {"),
        (lambda lines: ["[]", *lines], "not a report: line 1 is not a header but []"),
        (lambda lines: ["{", *lines], "not a whole report: line 1: "),
        (lambda lines: [lines[0], *lines], 'line 2: kind: "header" is not "verdict"'),
        (lambda lines: [*lines, lines[-1]], 'line 3: kind: "footer" is not "verdict"'),
        (lambda lines: [*lines[:2], *lines[1:]], 'line 3: case "c" has a verdict before'),
        (lambda lines: [lines[0], lines[2]], "line 2: totals.holds: 1, but 0 lines have this verdict"),
        (broken_line(1, verdict="perhaps"), 'line 2: verdict: "perhaps" is not one of holds, quirk, '),
        (broken_line(1, requirements="KV-MAP-001"), 'line 2: requirements: "KV-MAP-001" is not of type array'),
        (broken_line(1, duration=float("nan")), "line 2: duration: nan is not a number of seconds"),
        (broken_line(-1, exit_code=7), "line 3: exit_code: 7 is not one of 0, 1, 2"),
        (broken_line(0, format=True), "line 1: report format true, this release reads 1"),
        (broken_line(0, format=9), "line 1: report format 9, this release reads 1"),
        (without(1, "verdict"), "line 2: no verdict"),
        (without(-1, "complaints"), "line 3: no complaints"),
    ],
)
def test_what_is_no_whole_report_is_named(tmp_path: Path, change: Callable[[list[str]], list[str]], reply: str) -> None:
    file = write(tmp_path / "x", verdict("c", "KV-MAP-001", HOLDS)) / "report.jsonl"
    file.write_text("\n".join(change(file.read_text().splitlines())))
    with pytest.raises(SuiteError, match=f"{re.escape(str(file))}: {re.escape(reply)}.*conform --report DIR"):
        column.read(file)


def test_the_json_is_as_its_schema_says(three: Grid) -> None:
    schema = json.loads(files("kvref_conformance.reports").joinpath("matrix.schema.json").read_text())
    made = json.loads(forms.as_json(three))
    jsonschema.Draft202012Validator(schema).validate(made)
    assert made["requirements"][2]["verdicts"] == {"old": DEVIATES, "new": HOLDS, "broken": FAILS}
    assert made["endpoints"][2]["requirements"] == {HOLDS: 2, FAILS: 1, NOT_RUN: 1}
    assert (made["endpoints"][2]["exit_code"], made["endpoints"][2]["complaints"]) == (1, ["a row matches no case"])
    made["requirements"][0]["verdicts"]["old"] = "perhaps"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(made)


@pytest.mark.parametrize(
    ("verdicts", "percent"),
    [
        ([HOLDS, QUIRK], "100 %"),
        ([HOLDS] * 999 + [FAILS], "99 %"),
        ([DEVIATES, UNSUPPORTED], "0 %"),
        ([UNSUPPORTED, NOT_RUN], ""),
    ],
)
def test_the_share_is_of_judged_requirements(verdicts: list[str], percent: str) -> None:
    assert share(verdicts).percent == percent


def shown_lines(text: str) -> list[str]:
    found = re.findall(r'<tbody id="([^"]+)"[^>]*?( hidden="")?>', text)
    return [name for name, hidden in found if not hidden]


def test_the_page_shows_every_verdict(three: Grid, chromium: str, tmp_path: Path) -> None:
    file = tmp_path / "matrix.html"
    file.write_text(chapter_page(three))
    text = browser.opened(chromium, file, tmp_path)
    assert ">4 of 4 requirements</output>" in text
    assert len(shown_lines(text)) == 4
    begin = text.index('<tbody id="KV-MAP-003"')
    line = text[begin : text.index("</tbody>", begin)]
    assert re.findall(r'class="word">([\w ]+)<', line) == [DEVIATES, HOLDS, FAILS]
    assert "<code>get @@MAPPING</code> MUST return" in line
    assert 'class="detail"' not in text
    assert "a row matches no case" in matrix_pages.html(Record.of(three))["index.html"]


def test_the_pages_need_nothing_but_each_other(three: Grid) -> None:
    pages = matrix_pages.html(Record.of(three))
    for text in pages.values():
        assert {*re.findall(r"""(?:src|href)=["'](?!#)([^"']*)""", text)} <= pages.keys()
        assert not re.findall(r"url\(|@import|https?://", text)
        assert "prefers-color-scheme: dark" in text
        assert "@media print" in text


def test_the_command_writes_every_form(tmp_path: Path) -> None:
    report = write(tmp_path / "memcached", verdict("c", "KV-MAP-001", HOLDS))
    out = tmp_path / "out"
    options = [f"--{form}={out / form}" for form in (*cli_matrix.FORMS, *cli_matrix.FOLDERS)]
    done = CliRunner().invoke(main, ["matrix", str(report), f"b={report}", *options])
    assert done.exit_code == 0, done.output
    assert "1 requirements: verdicts differ in 0, only answers in 0" in done.output
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()) == [
        "badges/b.json", "badges/memcached.json", "data/mapping.json", "data/matrix.json", "found",
        "html/index.html", "html/mapping.html", "json", "junit", "markdown", "upgrade",
    ]  # fmt: skip
    shown = CliRunner().invoke(main, ["matrix", str(report), "--json", "-"])
    assert json.loads(shown.output)["format"] == 1


@pytest.mark.parametrize(
    ("arguments", "reply"),
    [
        (("nothing.jsonl",), "nothing.jsonl: No such file"),
        (("{report}", "--json", "-", "--junit", "-"), "only one FILE"),
        (("{report}", "--html", "-"), "--html -: several files cannot go to standard output: give a directory"),
        (("{report}", "--json", "/proc/none/x.json"), "cannot write /proc/none/x.json"),
        ((), "Missing argument"),
    ],
)
def test_bad_usage_of_the_command(tmp_path: Path, arguments: tuple[str, ...], reply: str) -> None:
    report = write(tmp_path / "x", verdict("c", "KV-MAP-001", HOLDS))
    done = CliRunner().invoke(main, ["matrix", *(each.format(report=report) for each in arguments)])
    assert done.exit_code == 2
    assert reply in done.output


@pytest.mark.live
@pytest.mark.nightly
def test_two_runs_on_one_server_are_the_same(tmp_path: Path) -> None:
    """Keys and cas numbers of a run are not differences, and answers of another server are."""
    with target_or_skip("memcached") as native, target_or_skip("yrmcds") as other:
        for name, target in (("one", native), ("two", native), ("yrmcds", other)):
            words = (target.address, "--profile", "memcached", "--chapter", "touch", "--report", name, "--repeat", "0")
            assert kvref("conform", *words, folder=tmp_path, timeout=120).returncode in {0, 1}
    found = column.read_all(str(tmp_path / name) for name in ("one", "two", "yrmcds"))
    alone = grid(found[:2])
    assert len(alone.rows) > 20
    assert {row.parts for row in alone.rows} == {SAME}
    assert {row.parts for row in grid(found).rows} > {SAME}
