"""Generated pages of the site show everything that the code or a record has."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from pathlib import Path

import pytest

import generators
from generators import (
    errors,
    markup,
    roles,
    scale,
)
from kvref.engine.steps.stats import FIXED
from kvref.profiles import vocabulary
from kvref.protocol.command_table import TABLE
from kvref.server.settings import SETTINGS
from kvref.server.telemetry.metrics import MEMCACHED_METRICS, METRICS
from kvref.specification import requirements

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]
# A generator reads the whole catalogue or source; each runs once.
pages = cache(generators.pages)
CODE = re.compile(r"`([^`]+)`")


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
    source = (ROOT / "kvref" / "engine" / "steps" / "stats.py").read_text(encoding="utf-8")
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


def test_costs_of_a_load_add_up() -> None:
    get, put = scale.Cost(6.9e-6, 3.5e-6), scale.Cost(13.9e-6, 14e-6)
    gets, half = (scale.need(1_000_000, share, get, put, 100) for share in (0.0, 0.5))
    assert (gets.processes, gets.processors, gets.groups, gets.commits) == (10, pytest.approx(5.0), 1, 0)
    assert (half.processes, half.processors, half.groups) == (15, pytest.approx(12.5), 1)
    assert half.commits == pytest.approx(500_000 / 128)
    assert scale.need(2_000_000, 0.5, get, put, 100).groups == 2
    assert scale.need(1_000_000, 0.5, get, put, 225).gigabits - half.gigabits == pytest.approx(1.0)
