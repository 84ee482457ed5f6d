"""The generator's own figures, and that percentiles from bins are as exact as the bins promise."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from support import selfcheck

pytestmark = pytest.mark.nightly


def test_the_answer_counts_what_missed_the_limit() -> None:
    none = pd.DataFrame()
    reply = selfcheck.conclude(none, pd.DataFrame({"lag_p99": [1e6, 3e6, math.nan]}), none)
    assert "within 2 ms of the scheduled time in 1 of 2 runs" in reply.sentence


def test_without_a_null_responder_nobody_can_tell() -> None:
    assert not selfcheck.conclude(pd.DataFrame(), selfcheck.calibrations([]), pd.DataFrame()).known
