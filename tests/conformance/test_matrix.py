"""Several reports: read strictly, compared without the parts that differ by run, written in every format."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from click.testing import CliRunner
from helpers import browser
from helpers.commands import kvref
from helpers.live import target_or_skip
from helpers.reports import HEADER

from kvref.cli import main
from kvref.errors import SuiteError
from kvref.specification import report
from kvref_conformance.cases import all_cases
from kvref_conformance.judging.conversation import Exchange
from kvref_conformance.judging.verdict import (
    DEVIATES,
    FAILS,
    FLAKY,
    HOLDS,
    NOT_RUN,
    QUIRK,
    UNSUPPORTED,
    VERDICTS,
    Tally,
    Verdict,
)
from kvref_conformance.reports import column, forms, jsonl, markdown, matrix_pages, record, standing
from kvref_conformance.reports.grid import ANSWERS, SAME, VERDICTS_DIFFER, Grid, changes, grid, share
from kvref_conformance.reports.levels import COLORS
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


def test_a_longer_conversation_parts_where_the_other_ends(tmp_path: Path) -> None:
    whole = reported("z1k", SHOWN)
    one = column.read(write(tmp_path / "one", verdict("c", "KV-MAP-001", HOLDS, whole)))
    two = column.read(write(tmp_path / "two", verdict("c", "KV-MAP-001", HOLDS, whole[:1])))
    made = grid([one, two])
    assert [place for _, _, place in changes(made.rows[0].cases, one, two)] == [1]
    assert "two  (ended before)" in markdown.upgrade(made)


def test_of_a_long_conversation_the_last_steps_are_shown(tmp_path: Path) -> None:
    begin = tuple(Exchange("a", f"get {n}\r\n", ("END\r\n",), "END\r\n") for n in range(7))
    answers = {"one": "END\r\n", "two": SHOWN}
    given = [
        column.read(write(tmp_path / name, verdict("c", "KV-MAP-001", HOLDS, (*begin, *reported("zk", answer)))))
        for name, answer in answers.items()
    ]
    text = markdown.upgrade(grid(given))
    assert "~~~~text\n(4 steps before)\na > get 4\\r\\n\n" in text
    assert "get 3" not in text


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


@pytest.mark.parametrize(
    ("file", "old", "new", "reply"),
    [
        (
            "matrix.json",
            '"old":"deviates"',
            '"old":"perhaps"',
            'requirements[2].verdicts.old: "perhaps" is not one of',
        ),
        ("matrix.json", '"format":1', '"format":2', "format: 2 is not 1"),
        ("mapping.json", '"fails"', '"perhaps"', 'cases.kept[2].verdict: "perhaps" is not one of crash, '),
        ("mapping.json", '"conversations":', '"talks":', "talks"),
        ("mapping.json", ":{\n", ":\n", "line 11 column 7"),
        ("mapping.json", None, None, "No such file"),
    ],
)
def test_a_verdict_file_that_does_not_fit_is_named(
    three: Grid, tmp_path: Path, file: str, old: str | None, new: str | None, reply: str
) -> None:
    written(tmp_path / "verdicts", three)
    path = tmp_path / "verdicts" / file
    if old is None or new is None:
        path.unlink()
    else:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
    with pytest.raises(SuiteError) as refused:
        Record.read(tmp_path / "verdicts")
    assert str(refused.value).startswith(f"{path}: ")
    assert reply in str(refused.value)
    assert str(refused.value).endswith(f": {record.FIX}")


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


def test_a_page_that_would_be_too_large_is_split(three: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Record.of(three)
    smallest = len(matrix_pages.html(made)["mapping.html"].encode())
    monkeypatch.setattr(matrix_pages, "MAX_BYTES", smallest - 1)
    pages = matrix_pages.html(made)
    assert list(pages) == ["index.html", "mapping.html", "mapping-2.html"]
    assert re.findall(r'<tbody id="([^"]+)"', pages["mapping-2.html"]) == ["KV-MAP-003", "KV-MAP-004"]
    assert '<a href="mapping.html">' in pages["index.html"]
    assert '<a href="mapping-2.html">2</a>' in pages["index.html"]
    monkeypatch.setattr(matrix_pages, "MAX_BYTES", 1)
    pages = matrix_pages.html(made)
    assert len(pages) == 5
    assert '"conversations":[]' in pages["mapping-3.html"]


def test_a_page_says_that_its_conversations_are_left_out(
    three: Grid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chromium: str
) -> None:
    monkeypatch.setattr(matrix_pages, "MAX_BYTES", 1)
    file = tmp_path / "mapping-3.html"
    file.write_text(matrix_pages.html(Record.of(three))["mapping-3.html"])
    shown = browser.opened(chromium, file, tmp_path, "#KV-MAP-003")
    assert "The conversations are too long for this page: the reports have them." in shown
    assert 'class="conversation"' not in shown


def test_conversations_of_older_reports_are_shown_but_not_compared(tmp_path: Path) -> None:
    for name, key in (("one", "z1k"), ("two", "z2k")):
        file = write(tmp_path / name, verdict("c", "KV-MAP-001", HOLDS, reported(key, SHOWN))) / "report.jsonl"
        header, line, footer = map(json.loads, file.read_text().splitlines())
        for exchange in line["conversation"]:
            del exchange["written"]
        file.write_text("".join(json.dumps(each) + "\n" for each in (header, line, footer)))
    made = grid(column.read_all([str(tmp_path / "one"), str(tmp_path / "two")]))
    assert [row.parts for row in made.rows] == [SAME]
    assert "0 requirements are answered otherwise" in markdown.upgrade(made)
    assert "get z1k" in chapter_page(made)
    assert "get z2k" in chapter_page(made)


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    for place in ("a", "b"):
        write(tmp_path / place / "same", verdict("c", "KV-MAP-001", HOLDS))
    with pytest.raises(SuiteError, match=r"2 reports are called 'same': name them, as in `new=same/report\.jsonl`"):
        column.read_all([str(tmp_path / "a" / "same"), str(tmp_path / "b" / "same")])


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


def test_no_output_takes_a_verdict_that_does_not_exist(tmp_path: Path) -> None:
    file = write(tmp_path / "x", verdict("c", "KV-MAP-001", HOLDS)) / "report.jsonl"
    file.write_text("\n".join(broken_line(1, verdict="perhaps")(file.read_text().splitlines())))
    options = [(f"--{name}", str(tmp_path / "out")) for name in (*cli_matrix.FORMS, *cli_matrix.FOLDERS, "history")]
    for words in ((), *options):
        refused = CliRunner().invoke(main, ["matrix", f"a={file}", *words])
        assert refused.exit_code == 2
        (line,) = refused.output.splitlines()
        assert line.startswith(f'Error: {file}: line 2: verdict: "perhaps" is not one of holds, ')
        assert not (tmp_path / "out").exists()


def test_the_schema_of_reports_has_the_words_of_the_suite() -> None:
    known = report.schema()["$defs"]
    assert set(known["word"]["enum"]) == set(VERDICTS)
    assert set(known["level"]["properties"]["verdict"]["enum"]) == set(COLORS)


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


def test_junit_has_a_suite_for_each_endpoint(three: Grid) -> None:
    old, _, broken = ET.fromstring(forms.as_junit(three))
    assert (old.get("name"), old.get("tests"), old.get("skipped"), old.get("failures")) == ("old", "4", "1", "0")
    assert (broken.get("failures"), broken.get("errors"), broken.get("time")) == ("1", "1", "1.500")
    failure = broken.find("testcase/failure")
    assert failure is not None
    assert failure.text == "KV-MAP-003\n<why>\\x01 kept"
    assert [case.get("name") for case in broken] == [
        "same [KV-MAP-001]", "other [KV-MAP-002]", "kept [KV-MAP-003]", "complaint 1",
    ]  # fmt: skip


def test_a_badge_says_the_worst(three: Grid) -> None:
    reply = {each.name: json.loads(forms.badge(each)) for each in three.columns}
    message = "3 passed, 0 failed, 0 not applicable, 1 deviates"
    assert reply["old"] == {"schemaVersion": 1, "label": "kvref kvref", "message": message, "color": "yellow"}
    assert reply["new"]["message"] == "3 passed, 0 failed, 1 not applicable"
    assert reply["new"]["color"] == "brightgreen"
    assert reply["broken"]["message"] == "2 passed, 1 failed, 0 not applicable, 1 complaint"
    assert reply["broken"]["color"] == "red"


def test_levels_of_conformance_are_counted_by_endpoint(three: Grid) -> None:
    mapping = json.loads(forms.as_json(three))["endpoints"][2]["levels"][1]
    assert (mapping["level"], mapping["passed"], mapping["failed"]) == ("mapping", 0, 0)
    text = "does not conform: 1 passed, 1 failed, 0 not applicable"
    found = [replace(each, levels=({"level": "core", "verdict": "does not conform", "totals": {"holds": 1, "fails": 1}, "applicable": 2},)) for each in three.columns]  # fmt: skip
    made = replace(three, columns=[found[0], three.columns[1], replace(three.columns[2], levels=())])
    assert f"<td>{text}</td>" in matrix_pages.html(Record.of(made))["index.html"]
    assert f"| core | {text} | " in markdown.summary(made)


def test_the_summary_fits_the_comment_of_a_pull_request(tmp_path: Path) -> None:
    failures = [replace(verdict(f"case-{n}", "KV-MAP-001", FAILS), text="z" * 900) for n in range(200)]
    text = markdown.summary(grid(column.read_all([str(write(tmp_path / "many", *failures))])))
    assert 50_000 < len(text) <= markdown.MAX_CHARACTERS == 60_000
    assert "more parts are left out here" in text


def test_the_upgrade_report_has_both_answers(three: Grid) -> None:
    text = markdown.upgrade(three)
    assert "# From old to new to broken" in text
    assert "2 requirements are answered otherwise, 1 apply to old only, 0 to new only." in text
    begin = text.index("### KV-MAP-002")
    assert text[begin : text.index("~~~~\n", begin)].endswith(
        "Case `other`:\n\n~~~~text\n"
        "a > set z12k 0 0 1\\r\\nx\\r\\n\n"
        "a < STORED\\r\\n\n"
        "old  a > get z12k\\r\\n\n"
        "old  a < END\\r\\n\n"
        "new  a > get z22fk\\r\\n\n"
        "new  a < VALUE z22fk 0 1\\r\\nx\\r\\nEND\\r\\n\n"
    )
    assert "### Only old\n\n* KV-MAP-004 " in text


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


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ('value="holds" checked', 'value="holds"', ["KV-MAP-003", "KV-MAP-004"]),
        ('value="the same" checked', 'value="the same"', ["KV-MAP-002", "KV-MAP-003", "KV-MAP-004"]),
        ('value="MUST" checked', 'value="MUST"', []),
        ('name="text"', 'name="text" value="MAP-003 deviates"', ["KV-MAP-003"]),
    ],
)
def test_the_page_filters(three: Grid, chromium: str, tmp_path: Path, old: str, new: str, lines: list[str]) -> None:
    file = tmp_path / "matrix.html"
    text = chapter_page(three)
    assert old in text
    file.write_text(text.replace(old, new))
    found = browser.opened(chromium, file, tmp_path)
    assert shown_lines(found) == lines
    assert f">{len(lines)} of 4 requirements</output>" in found


def test_a_link_opens_a_line_with_all_conversations(three: Grid, chromium: str, tmp_path: Path) -> None:
    file = tmp_path / "matrix.html"
    file.write_text(chapter_page(three))
    text = browser.opened(chromium, file, tmp_path, "#KV-MAP-003")
    assert text.count('class="detail"') == 1
    detail = text[text.index('class="detail"') : text.index("</tbody>", text.index('class="detail"'))]
    assert detail.count('class="side"') == 3
    assert r"\xff&lt;script&gt;\r\n" in detail
    assert "&lt;why&gt;" in detail
    # The step at which they part is marked, the one before is not.
    assert re.findall(r'<tr class="(parts)?"><td>(\d)', detail) == [
        ("", "1"), ("", "2"), ("", "1"), ("parts", "2"), ("", "1"), ("parts", "2"),
    ]  # fmt: skip
    equal = browser.opened(chromium, file, tmp_path, "#KV-MAP-001")
    assert equal[equal.index('class="detail"') :].count('class="side"') == 1


def test_keys_move_and_open(three: Grid, chromium: str, tmp_path: Path) -> None:
    keys = "".join(
        f"(document.activeElement ?? document.body).dispatchEvent("
        f"new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}));"
        for key in ("j", "j", "j", "k")
    )
    file = tmp_path / "matrix.html"
    file.write_text(
        chapter_page(three).replace("</body>", f"<script>{keys} document.activeElement.click();</script></body>")
    )
    text = browser.opened(chromium, file, tmp_path)
    assert re.findall(r'<tbody id="([^"]+)"(?:(?!</tbody>).)*class="detail"', text, re.DOTALL) == ["KV-MAP-002"]
    file.write_text(
        file.read_text().replace(
            ".click();</script>", ".click();" + keys.split(";")[0].replace("'j'", "'Escape'") + "</script>"
        )
    )
    assert 'class="detail"' not in browser.opened(chromium, file, tmp_path)


def test_the_pages_need_nothing_but_each_other(three: Grid) -> None:
    pages = matrix_pages.html(Record.of(three))
    for text in pages.values():
        assert {*re.findall(r"""(?:src|href)=["'](?!#)([^"']*)""", text)} <= pages.keys()
        assert not re.findall(r"url\(|@import|https?://", text)
        assert "prefers-color-scheme: dark" in text
        assert "@media print" in text


def test_the_index_finds_a_chapter_by_a_requirement(three: Grid, chromium: str, tmp_path: Path) -> None:
    file = tmp_path / "index.html"
    text = matrix_pages.html(Record.of(three))["index.html"]
    file.write_text(text.replace('name="text"', 'name="text" value="kv-map-004"'))
    assert ">1 of 1 chapters</output>" in browser.opened(chromium, file, tmp_path)
    file.write_text(text.replace('name="text"', 'name="text" value="kv-map-005"'))
    assert ">0 of 1 chapters</output>" in browser.opened(chromium, file, tmp_path)


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
    """Keys and cas numbers of a run are no difference, and answers of another server are."""
    with target_or_skip("memcached") as native, target_or_skip("yrmcds") as other:
        for name, target in (("one", native), ("two", native), ("yrmcds", other)):
            words = (target.address, "--profile", "memcached", "--chapter", "touch", "--report", name, "--repeat", "0")
            assert kvref("conform", *words, folder=tmp_path, timeout=120).returncode in {0, 1}
    found = column.read_all(str(tmp_path / name) for name in ("one", "two", "yrmcds"))
    alone = grid(found[:2])
    assert len(alone.rows) > 20
    assert {row.parts for row in alone.rows} == {SAME}
    assert {row.parts for row in grid(found).rows} > {SAME}


def test_what_generated_conversations_found_is_reported(tmp_path: Path) -> None:
    text = "KV-SEQ-005 [MUST] a sentence\ncase any-arguments\nseed 7\n  1    a > get k\\r\\n\nrepeated: deterministic (5/5)\nagain: no"
    drawn = Verdict("any-arguments~2", "arguments", ("KV-SEQ-005",), FAILS, text=text)
    flaky = Verdict("any-order-of-commands", "commands", ("KV-SEQ-001",), FLAKY, text="seed 7; flaky\n  1  get\n")
    written = Verdict("set-new", "storage", ("KV-CORE-001",), FAILS, text="seed 7\nno set")
    holds = Verdict("any-arguments", "arguments", ("KV-SEQ-005",), HOLDS)
    for name, verdicts in (("bad", [drawn, written, flaky]), ("good", [holds])):
        (tmp_path / name).mkdir()
        jsonl.write(tmp_path / name / "report.jsonl", HEADER, Tally(verdicts))
    reported = markdown.found(grid(column.read_all([str(tmp_path / "bad"), str(tmp_path / "good")])))
    assert "3 things" not in reported
    assert "2 things on 1 of 2 endpoints." in reported
    assert (
        "### any-arguments~2: fails\n\n~~~~text\n  1    a > get k\\r\\n\nrepeated: deterministic (5/5)\n~~~~\n"
        in reported
    )
    assert "### any-order-of-commands: flaky" in reported
    assert "## good" not in reported
