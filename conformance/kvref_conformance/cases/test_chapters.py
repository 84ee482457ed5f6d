"""The cases that are data: one TOML file a chapter (`chapter.py`)."""

from __future__ import annotations

from kvref_conformance.cases.chapter import literal_cases

CASES = literal_cases()
