"""The header of a report that no run made."""

from __future__ import annotations

from kvref_conformance.report.header import Header

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
