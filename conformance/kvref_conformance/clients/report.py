"""Verdicts of several clients: as JSON, as lines for a terminal, and as the recorded table of the documentation."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

from kvref_conformance.clients.judge import FAILS, HOLDS, Judged, Verdict
from kvref_conformance.clients.requirements import load
from kvref_conformance.clients.rows import judged_clients
from kvref_conformance.data.marks import between
from kvref_conformance.data.tables import tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PATH: Final = Path(__file__).with_name("result.json")
VARIES: Final = "varies"
VARYING: Final = Path(__file__).with_name("varies.toml")
MARKS: Final = ("<!-- verdicts: written by kvref conform-client -->\n", "<!-- end of verdicts -->\n")
Record = dict[str, Any]


class _Varying(TypedDict):
    reason: str
    requirements: tuple[str, ...]


def record(judged: Mapping[str, Judged], skipped: Mapping[str, str], date: str, timeout: float) -> Record:
    """Return the results as JSON values.

    Args:
        judged: verdicts by client.
        skipped: reasons by client.
        date: ISO date.
        timeout: of the clients, in seconds.
    """
    rows = {
        name: {
            "client": one.client,
            "version": one.version,
            "runtime": one.runtime,
            "verdicts": {key: _verdict(each) for key, each in one.verdicts.items()},
        }
        for name, one in judged.items()
    }
    return {"date": date, "timeout": timeout, "clients": rows, "skipped": dict(skipped)}


def marked(one: Record) -> Record:
    """Return the results with the outcome VARIES, and the reason, for each verdict that varies.toml lists."""
    clients = {name: dict(row, verdicts=dict(row["verdicts"])) for name, row in one["clients"].items()}
    for name, listed in tables(VARYING, _Varying).items():
        for key in listed["requirements"]:
            clients[name]["verdicts"][key] = {"outcome": VARIES, "why": listed["reason"]}
    return one | {"clients": clients}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    row: dict[str, Any] = {"outcome": verdict.outcome}
    if verdict.why:
        row["why"] = verdict.why
    if verdict.steps:
        row["steps"] = [step.as_json() for step in verdict.steps]
    return row


def dumped(one: Record) -> str:
    """Return the text of a record, a line for each requirement that does not hold."""
    lines = []
    for name, row in one["clients"].items():
        by_id = row["verdicts"]
        head = {key: value for key, value in row.items() if key != "verdicts"}
        head["holds"] = [key for key, each in by_id.items() if each["outcome"] == HOLDS]
        others = [
            f"    {json.dumps(key)}: {json.dumps(each)}" for key, each in by_id.items() if each["outcome"] != HOLDS
        ]
        text = ",\n".join(others)
        lines.append(f'  {json.dumps(name)}: {json.dumps(head)[:-1]}, "others": {{\n{text}\n  }}}}')
    head = {"date": one["date"], "timeout": one["timeout"], "skipped": one["skipped"]}
    clients = ",\n".join(lines)
    return f'{json.dumps(head)[:-1]}, "clients": {{\n{clients}\n}}}}\n'


def parsed(text: str) -> Record:
    """Read what `dumped` returns."""
    one: Record = json.loads(text)
    order = [each.id for each in load()]
    for row in one["clients"].values():
        found = {key: {"outcome": HOLDS} for key in row.pop("holds")} | row.pop("others")
        row["verdicts"] = {key: found[key] for key in order if key in found}
    return one


def recorded() -> Record:
    """Return the last full run that was written down."""
    return parsed(PATH.read_text(encoding="utf-8"))


def table(one: Record) -> str:
    """Return the table of the documentation: clients by group, and the failed requirements of each client."""
    groups = list(dict.fromkeys(each.group for each in load()))
    rows = judged_clients()
    lines = [
        f"{one['date']}, timeout of the clients {one['timeout']:g} s. A cell is the number of requirements that hold"
        " and of those that apply; `-`: none applies.",
        "",
        f"| client | version | MUST | SHOULD | {' | '.join(groups)} |",
        "|---" * (len(groups) + 4) + "|",
    ]
    levels = {each.id: each.level for each in load()}
    for name, row in one["clients"].items():
        holding, tried = Counter[str](), Counter[str]()
        for key, verdict in row["verdicts"].items():
            if verdict["outcome"] in {HOLDS, FAILS}:
                for kind in (levels[key], key.split("-")[1]):
                    tried[kind] += 1
                    holding[kind] += verdict["outcome"] == HOLDS
        cells = [f"{holding[kind]}/{tried[kind]}" if tried[kind] else "-" for kind in ("MUST", "SHOULD", *groups)]
        lines.append(f"| {rows[name].title} | {row['version']} | {' | '.join(cells)} |")
    lines += ["", "Failed requirements:", ""]
    for name, row in one["clients"].items():
        failed = [key for key, verdict in row["verdicts"].items() if verdict["outcome"] == FAILS]
        lines.append(f"* {rows[name].title}: {', '.join(f'{key}' for key in failed) or 'none'}")
    lines += ["", "Requirements that hold in some runs and fail in others, counted in no cell:", ""]
    for name, row in one["clients"].items():
        varying = [(key, each["why"]) for key, each in row["verdicts"].items() if each["outcome"] == VARIES]
        if varying:
            lines.append(f"* {rows[name].title}: {', '.join(key for key, _ in varying)}. {varying[0][1]}")
    return "\n".join(lines) + "\n"


def filled(page: str, one: Record) -> str:
    """Return the page with the table between its marks. Raises SuiteError without the marks."""
    return between(page, MARKS, table(one))


def conversation(steps: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the steps of a failure as lines: what the server receives and sends, by connection, and the result."""
    for number, step in enumerate(steps, 1):
        yield f"    {number}. {json.dumps(step['call'], ensure_ascii=False)}"
        for connection, kind, *data in step["wire"]:
            yield f"        C{connection} {kind}{''.join(f' {json.dumps(each)}' for each in data)}"
        result = {key: value for key, value in step.items() if key not in {"call", "wire"}}
        yield f"        {json.dumps(result, ensure_ascii=False)}"
