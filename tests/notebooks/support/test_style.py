"""Labels do not overlap, words are read on white, and numbers are written as on an axis."""

from __future__ import annotations

import math

import pytest
from matplotlib.colors import to_rgb

from support import answer, style

pytestmark = pytest.mark.nightly


def test_words_have_contrast_on_white() -> None:
    for shades in style.PALETTE.values():
        for shade in shades:
            linear = [
                each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4
                for each in to_rgb(style.ink(shade))
            ]
            luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
            assert 1.05 / (luminance + 0.05) >= 3.0  # of large bold text, WCAG 2.1, 1.4.3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (123_852, "124,000"),
        (0.0000363, "0.0000363"),
        (1.0, "1.00"),
        (0, "0"),
        (math.inf, "no limit"),
        (math.nan, "unknown"),
    ],
)
def test_figures_have_three_places(value: float, text: str) -> None:
    assert answer.figures(value) == text


def test_names_are_listed_as_in_a_sentence() -> None:
    assert [answer.listed(["a", "b", "c"][:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
