"""How the test of a case ends: passed, expected to fail, skipped or failed, by its verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kvref_conformance.errors import CaseFailed
from kvref_conformance.verdict import BROKEN, DEVIATES, KEPT, NON_STRICT

if TYPE_CHECKING:
    from kvref_conformance.run import Run
    from kvref_conformance.verdict import Verdict


def end_test(run: Run, *records: Verdict) -> None:
    """Keep the verdicts on a case, several where it found several things, and end the test accordingly."""
    __tracebackhide__ = True
    kept = [run.keep(record) for record in records]
    if broken := [record.text for record in kept if record.verdict in BROKEN]:
        raise CaseFailed("\n\n".join(broken))
    if any(record.verdict in {DEVIATES, NON_STRICT} for record in kept):
        pytest.xfail(kept[0].reason)
    if kept[0].verdict not in KEPT:
        pytest.skip(f"{kept[0].verdict}: {kept[0].reason}")
