"""The header and the lines of a report that no run made."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from kvref_conformance.report.header import Header

if TYPE_CHECKING:
    from collections.abc import Iterable

HEADER = Header(
    format=1,
    suite="0.1.0",
    endpoint="127.0.0.1:1",
    version="9.9.9",
    profile="kvref",
    profile_reason="as asked for",
    sql=None,
    database=None,
    level="must",
    features={"touch": True, "meta": False},
    catalogue="00",
    seed=7,
    examples=60,
    platform="here",
    started="2026-01-01T00:00:00Z",
)


def lines(*verdicts: dict[str, Any], **header: object) -> list[dict[str, Any]]:
    """Return the lines of a report.

    Args:
        verdicts: with `case`, `verdict` and `requirements` at least.
        header: fields of the first line with another value.
    """
    first = {
        "kind": "header",
        "format": 1,
        "suite": "1",
        "endpoint": "x:1",
        "version": "1",
        "profile": "kvref",
        "sql": None,
        "database": None,
        "started": "2026-01-01T00:00:00Z",
    }
    whole = [{"kind": "verdict", "chapter": "c", "reason": "", "duration": 0.1, **each} for each in verdicts]
    totals = Counter(each["verdict"] for each in verdicts)
    last = {"kind": "footer", "totals": totals, "complaints": [], "defects": [], "exit_code": 0}
    return [{**first, **header}, *whole, last]


def text(lines: Iterable[object]) -> str:
    """Return lines as a file has them."""
    return "".join(json.dumps(line) + "\n" for line in lines)
