"""Typed holes: what fits, what does not, and where cas numbers stand in an answer."""

from __future__ import annotations

import pytest

from kvref_conformance.corpus.holes import CasNumbers, Clock, is_hole, matches

NOW = 1_700_000_000
CLOCK = Clock(NOW, NOW + 0.5)

FITS = {
    "plain": ("END\r\n", "END\r\n"),
    "cas": (["VALUE k 0 1 ", {"cas": 1}, "\r\n1\r\nEND\r\n"], "VALUE k 0 1 4711\r\n1\r\nEND\r\n"),
    "cas twice": ([{"cas": 1}, " ", {"cas": 1}, " ", {"cas": 2}], "7 7 8"),
    "cas in a cell": ({"rows": [["k", {"cas": 1}]]}, {"rows": [["k", 5]]}),
    "time": (["STAT time ", {"time": 0}, "\r\n"], f"STAT time {NOW - 1}\r\n"),
    "time ahead": ({"rows": [[{"time": 100}]]}, {"rows": [[NOW + 101]]}),
    "number": (["STAT rusage ", {"number": "counter"}, "\r\n"], "STAT rusage 0.25\r\n"),
    "negative number": ({"rows": [[{"number": "garbage"}]]}, {"rows": [[-3]]}),
    "bytes": (["a|", {"bytes": "garbage"}, "|b"], "a|\x00\r\n\xff|b"),
    "no bytes": (["a|", {"bytes": "garbage"}, "|b"], "a||b"),
    "any text": ({"bytes": "race"}, "STORED\r\n"),
    "any result": ({"bytes": "race"}, {"error": [1205, "Lock wait timeout exceeded"]}),
    "any rows": ({"rows": {"bytes": "race"}}, {"rows": [[1], [2]]}),
    "a crowd": ({"STORED\r\n": 20}, {"STORED\r\n": 20}),
}
FITS_NOT = {
    "other text": ("END\r\n", "ERROR\r\n"),
    "text before": (["VALUE k 0 1 ", {"cas": 1}, "\r\n"], "VALUE K 0 1 5\r\n"),
    "one number for two": ([{"cas": 1}, " ", {"cas": 2}], "7 7"),
    "two numbers for one": ([{"cas": 1}, " ", {"cas": 1}], "7 8"),
    "cas is not a word": ([{"cas": 1}, "\r\n"], "seven\r\n"),
    "time long ago": (["STAT time ", {"time": 0}, "\r\n"], f"STAT time {NOW - 60}\r\n"),
    "number is digits": (["STAT pid ", {"number": "pid"}, "\r\n"], "STAT pid x\r\n"),
    "number in a cell": ({"rows": [[{"number": "garbage"}]]}, {"rows": [["3"]]}),
    "fewer rows": ({"rows": [["k", {"cas": 1}], ["l", {"cas": 2}]]}, {"rows": [["k", 5]]}),
    "another kind of result": ({"rows": []}, {"affected": 0}),
    "number beside text": ({"rows": [["1"]]}, {"rows": [[1]]}),
    "true is not 1": ({"rows": [[1]]}, {"rows": [[True]]}),
    "closed": ("END\r\n", "END\r\n<EOF>"),
}


@pytest.mark.parametrize(("recorded", "observed"), FITS.values(), ids=FITS)
def test_what_fits(recorded, observed) -> None:
    assert matches(recorded, observed, CasNumbers(), CLOCK)


@pytest.mark.parametrize(("recorded", "observed"), FITS_NOT.values(), ids=FITS_NOT)
def test_what_does_not(recorded, observed) -> None:
    assert not matches(recorded, observed, CasNumbers(), CLOCK)


def test_a_result_is_no_hole() -> None:
    assert is_hole({"cas": 1})
    assert not is_hole({"rows": []})
    assert not is_hole({"cas": 1, "time": 2})
    with pytest.raises(ValueError, match="is not a hole"):
        matches(["x", {"cos": 1}], "x1", CasNumbers(), CLOCK)
