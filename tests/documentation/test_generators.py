"""Generated pages of the site show everything that the code or a record has."""

from __future__ import annotations

import ast
import re
from functools import cache
from html import escape
from pathlib import Path

import pandas as pd
import pytest

import generators
from generators import (
    errors,
    markup,
    notebooks,
    roles,
    scale,
)
from kvref.cli.registry import commands
from kvref.engine.verbs.stats import FIXED
from kvref.profiles import vocabulary
from kvref.protocol.command_table import TABLE
from kvref.server.settings import SETTINGS
from kvref.server.telemetry.metrics import MEMCACHED_METRICS, METRICS
from kvref.specification import deviations as lists
from kvref.specification import requirements
from kvref.specification.deviations import defects

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]
# A generator reads the whole catalogue or source; each runs once.
pages = cache(generators.pages)
CODE = re.compile(r"`([^`]+)`")


@pytest.mark.parametrize("module", [name for name in generators.MODULES if name != "notebooks"])
def test_every_page_is_in_a_folder_of_generated_pages(module: str) -> None:
    made = pages(module)
    assert made
    for path in made:
        assert path.startswith(tuple(f"{folder}/" for folder in generators.FOLDERS)), path


def test_every_requirement_has_an_anchor_and_its_text_on_the_page_of_its_chapter() -> None:
    made = pages("specification")
    for each in requirements.load().values():
        page = made[f"reference/specification/{each.chapter}.md"]
        assert f'<a id="{each.id}"></a>' in page
        assert f"({each.id.lower()})=\n## {each.id}: " in page
        assert f"**{each.level}.** {markup.prose(each.statement)}\n" in page
        number = each.id.rpartition("-")[2]
        linked = f'<a href="{each.chapter}.html#{each.id}" title="{escape(each.title)}">{number}</a>'
        assert linked in made["reference/specification/by-id.md"]
        assert f"```{{index}} ! {each.id}\n```\n" in page


def test_every_contradiction_is_in_the_register() -> None:
    page = pages("specification")["reference/specification/contradictions.md"]
    for each in requirements.load().values():
        assert (markup.link(each.id) in page) == bool(each.contradicts), each.id


def test_every_command_has_a_page() -> None:
    made = pages("commands")
    assert made.keys() == {f"reference/commands/{name}.md" for name in (*commands(), "index")}


def test_every_setting_metric_and_fact_is_in_its_table() -> None:
    (settings_table,) = pages("settings").values()
    metrics_table, memcached_table = pages("metrics").values()
    (facts_page,) = pages("facts").values()
    assert all(f"| `{name}` |" in settings_table for name in SETTINGS)
    assert all(re.search(rf"! {name}[,\n]", settings_table) for name in SETTINGS), (
        "the search finds a setting there first"
    )
    assert all(f"| `{name}` |" in metrics_table for name in METRICS)
    assert all(f"| `{row.name}` |" in memcached_table for row in MEMCACHED_METRICS.values())
    assert all(f"* `{name}`: " in facts_page for name in vocabulary())


def test_every_verb_and_opcode_is_in_the_table_of_the_protocol_and_the_page_explains_each_verb() -> None:
    (table,) = pages("verbs").values()
    page = (ROOT / "docs" / "reference" / "protocol.md").read_text(encoding="utf-8")
    listed = {
        word.split()[0] for cell in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for word in CODE.findall(cell)
    }
    meta = set(CODE.findall(page.partition("## Meta commands\n")[2].partition("reply as memcached")[0]))
    text = {verb.decode() for row in TABLE for verb in row.text}
    assert {word for word in listed | meta if not word.startswith(("@", "AA"))} == text
    for verb in text:
        assert f"`{verb}`" in table
    for opcode in (opcode for row in TABLE for opcode in row.binary):
        assert f"`0x{opcode:02x}`" in table
    assert "| `touch` |  | write | `set` | `kvref` |" in table


def test_every_subcommand_of_stats_is_on_the_page() -> None:
    source = (ROOT / "kvref" / "engine" / "verbs" / "stats.py").read_text(encoding="utf-8")
    words = {*re.findall(r'case \[b"([a-z]+)", ', source), *re.findall(r'startswith\(b"(\w+)"\)', source)}
    words = (words - {"dump"}) | {name.decode() for name in FIXED}
    assert words >= {"settings", "vbucket", "slabs"}
    page = (ROOT / "docs" / "reference" / "stats.md").read_text(encoding="utf-8")
    table = page.partition("|---|---|")[2].partition("\n\n")[0]
    assert {word.split()[-1] for word in CODE.findall(table) if f"`{word}`" in table} >= words - {"detail"}
    assert "stats detail on" in table


def test_the_page_of_limits_shows_every_limit_of_the_settings_from_the_code() -> None:
    page = (ROOT / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")
    limits = {name for name in SETTINGS if name.endswith(("_max", "_timeout", "maxconns", "_cache_bytes"))}
    missing = {name for name in limits if f"{{limit}}`{name}`" not in page}
    assert missing == {"idle_timeout", "innodb_lock_wait_timeout"}  # without a limit by default; not one of a client
    assert SETTINGS["idle_timeout"].default == 0
    for name in re.findall(r"\{limit\}`([^`]+)`", page):
        assert roles.limit(name)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1 << 20, "bytes", "1 MiB"),
        (64 << 10, "KiB", "64 MiB"),
        (1 << 10, "bytes", "1 KiB"),
        (250, "bytes", "250 bytes"),
        (0, "bytes", "0 bytes"),
        (300, "s", "300 s"),
        (0.002, "s", "2 ms"),
        (10_000, "connections", "10,000"),
    ],
)
def test_a_limit_is_shown_with_its_unit(value: float, unit: str, text: str) -> None:
    assert roles.with_unit(value, unit) == text


def test_a_limit_without_a_constant_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"'kvref\.engine\.session\.NONE' is neither"):
        roles.limit("kvref.engine.session.NONE bytes")
    with pytest.raises(LookupError, match="'nothing' is neither"):
        roles.limit("nothing")


def test_every_row_of_stats_has_a_meaning() -> None:
    (table,) = pages("statistics").values()
    assert "| `cmd_get` | keys read by get commands | yes | yes |" in table
    assert "| `touch_hits` | touched rows | yes | no |" in table


def test_every_deviation_and_defect_is_listed() -> None:
    made = pages("deviations")
    for row in lists.load("mysql-8.0").rows.values():
        assert markup.prose(row.reason) in made["reference/deviations/mysql-8.0.md"]
    for defect in defects.load():
        assert markup.link(defect.requirement) in made["reference/deviations/defects.md"]


def test_a_pair_of_profiles_shows_what_differs_and_nothing_else() -> None:
    folder = "reference/differences/mysql-8.0-and-kvref/"
    made = {name: text for name, text in pages("differences").items() if name.startswith(folder)}
    listed = (name.removeprefix(folder) for name in made if not name.endswith("index.md"))
    assert all(f"({name})" in made[f"{folder}index.md"] for name in listed)
    assert not [name for name, text in made.items() if markup.link("KV-CORE-001") in text]
    assert "`mapping.switching_verbs`" in made[f"{folder}facts.md"]
    assert markup.link("KV-RANGE-013") not in "".join(made.values())
    assert [name for name, text in made.items() if len(text.split()) > 5000] == []
    touch = made[f"{folder}touch.md"]
    assert touch.index("## Only `kvref`") < touch.index(markup.link("KV-TOUCH-001"))
    assert "## Only `mysql-8.0`" not in touch
    assert "| " not in touch, "a table of sentences is not readable on a phone"


def test_every_error_reply_has_its_cause_and_fix_on_the_page() -> None:
    explained = errors.meanings()
    assert errors.replies() | errors.statuses().keys() == explained.keys(), (
        "edit kvref/specification/normative/replies.toml"
    )
    assert [
        text for text, row in explained.items() if set(row) - {"own"} != {"cause", "fix"} or not all(row.values())
    ] == []
    listener = (errors.ROOT / "server/listeners/authentication.py").read_text(encoding="utf-8")
    assert [text for text in errors.AUTHENTICATION.values() if f'b"{text}"' not in listener] == []
    page = "".join(pages("errors").values())
    missing = [text for text in explained if f"| {markup.cell(markup.code(text))} |" not in page]
    assert missing == []


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ('x = b"CLIENT_ERROR bad line\\r\\n"', ["CLIENT_ERROR bad line"]),
        ('r.ClientError(f"{len(parts)} parts of {column.name}")', ["CLIENT_ERROR {parts} parts of {column}"]),
        ('raise StoreError("gone")', ["SERVER_ERROR gone"]),
        ("raise StoreError(reason)", []),
        ('LOCK_WAIT: Final = "timeout"', ["SERVER_ERROR timeout"]),
    ],
)
def test_error_texts_are_read_from_the_source(source: str, texts: list[str]) -> None:
    assert list(errors._texts(ast.parse(source), fails=True)) == texts


def test_the_matrix_has_every_endpoint_and_verdict() -> None:
    (page,) = pages("matrix").values()
    assert re.search(r"^\| endpoint \| \*holds\* \| \*quirk\* \|", page, re.MULTILINE)
    assert len(re.findall(r"^\| `[\w.-]+`( \| \d*){4,} \|$", page, re.MULTILINE)) == 12
    assert "* *holds*: every answer was allowed" in page
    assert page.count("<th scope='col'><span>") == 12
    assert re.search(r"<td style='--share: 1.000' title='(\d+) of \1 on kvref-mysql-8.0'>100 %</td>", page)


def test_every_release_of_the_changelog_is_a_version_of_the_documentation() -> None:
    (listed,) = pages("versions").values()
    assert "| main |  | [pages](https://kvref.github.io/kvref/) |" in listed
    assert (
        "| 0.2.0 | 2026-11-23 | [files in the repository](https://github.com/kvref/kvref/tree/v0.2.0/docs) |" in listed
    )
    found = re.findall(r"^## \[(\d\S+)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [row.split("|")[1].strip() for row in listed.splitlines()[3:]] == found


def test_a_computed_table_has_the_style_of_the_site_and_no_row_numbers() -> None:
    numbered = pd.DataFrame({"server": ["a", "b"], "rate": [1, 2]})
    html = notebooks.computed_table(numbered.to_html())
    assert html.startswith('<div class="table-wrapper container">\n<table class="docutils computed">')
    assert re.findall(r"<t[hd]>(.*)</t[hd]>", html) == ["server", "rate", "a", "1", "b", "2"]
    named = numbered.set_index("server")
    assert "<th>a</th>" in notebooks.computed_table(named.to_html())
    assert "<th>1</th>" in notebooks.computed_table(numbered.set_index(pd.Index([1, 2])).to_html())


def test_a_long_computed_table_is_folded() -> None:
    rows = pd.DataFrame({"rate": range(notebooks.MAX_ROWS)})
    assert "<details>" not in notebooks.computed_table(rows.to_html())
    longer = notebooks.computed_table(pd.concat([rows, rows]).to_html())
    assert longer.startswith(f"<details><summary>Table of {2 * notebooks.MAX_ROWS} rows</summary>")


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("a_b <c> [d]", r"a\_b \<c\> \[d\]"),
        ("`a_b` and *c*", "`a_b` and *c*"),
        ("see KV-MAP-001", "see {ref}`KV-MAP-001 <kv-map-001>`"),
        ("`KV-MAP-001`", "{ref}`KV-MAP-001 <kv-map-001>`"),
    ],
)
def test_markup_of_texts(text: str, markdown: str) -> None:
    assert markup.prose(text) == markdown


def test_a_code_span_holds_backquotes() -> None:
    assert markup.code("a`b") == "``a`b``"
    assert markup.code("`b") == "`` `b ``"
    assert markup.code("") == ""


def test_a_cell_has_no_bar_of_its_own() -> None:
    assert markup.table(("a",), [("x | y\nz",)]) == "| a |\n|---|\n| x \\| y z |\n"


def test_costs_of_a_load_add_up() -> None:
    get, put = scale.Cost(6.9e-6, 3.5e-6), scale.Cost(13.9e-6, 14e-6)
    gets, half = (scale.need(1_000_000, share, get, put, 100) for share in (0.0, 0.5))
    assert (gets.processes, gets.processors, gets.groups, gets.commits) == (10, pytest.approx(5.0), 1, 0)
    assert (half.processes, half.processors, half.groups) == (15, pytest.approx(12.5), 1)
    assert half.commits == pytest.approx(500_000 / 128)
    assert scale.need(2_000_000, 0.5, get, put, 100).groups == 2
    assert scale.need(1_000_000, 0.5, get, put, 225).gigabits - half.gigabits == pytest.approx(1.0)


def test_unchanged_pages_are_left_alone_and_stale_ones_deleted(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(generators, "MODULES", ("settings",))
    stale = tmp_path / "reference" / "generated" / "old.txt"
    stale.parent.mkdir(parents=True)
    stale.write_text("old")
    generators.write_all(tmp_path, ("settings",))
    made = tmp_path / "reference" / "generated" / "settings.txt"
    before = made.stat().st_mtime_ns
    generators.write_all(tmp_path, ("settings",))
    assert (stale.exists(), made.stat().st_mtime_ns) == (False, before)
