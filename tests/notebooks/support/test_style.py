"""Labels do not overlap, words are read on white, and numbers are written as on an axis."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb

from support import answer, style
from support.style import spread


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 0.1)), min_size=1, max_size=9))
def test_labels_are_moved_apart_and_stay_in_order(labels: list[tuple[float, float]]) -> None:
    labels.sort()
    sizes = [size for _, size in labels]
    heights = spread([wanted for wanted, _ in labels], sizes)
    for (low, lower), (high, upper) in zip(
        zip(heights, sizes, strict=True), list(zip(heights, sizes, strict=True))[1:], strict=False
    ):
        assert high - low >= (lower + upper) / 2 - 1e-9
    assert heights[0] >= sizes[0] / 2 - 1e-9
    assert heights[-1] <= 1 - sizes[-1] / 2 + 1e-9


def test_labels_with_room_stay_where_they_are() -> None:
    assert spread([0.2, 0.5, 0.8], [0.1, 0.1, 0.1]) == pytest.approx([0.2, 0.5, 0.8])


def test_words_have_contrast_on_white() -> None:
    for shades in style.PALETTE.values():
        for shade in shades:
            linear = [
                each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4
                for each in to_rgb(style.ink(shade))
            ]
            luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
            assert 1.05 / (luminance + 0.05) >= 3.0  # of large bold text, WCAG 2.1, 1.4.3


def test_servers_of_a_kind_differ_and_keep_their_look() -> None:
    all_of_them = [
        ("plugin 5.6.14", "plugin"),
        ("plugin 8.0.33", "plugin"),
        ("memcached", "memcached"),
        ("x", "unheard of"),
    ]
    line_styles = style.line_styles(all_of_them)
    assert line_styles == style.line_styles(reversed(all_of_them))
    assert len(set(line_styles.values())) == 4
    assert line_styles["plugin 8.0.33"].colour == style.PALETTE["plugin"][0]


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.034, "0.034"), (950, "950"), (9999, "9,999"), (12_345, "12.3k"), (1.2e6, "1.2M")]
)
def test_numbers_on_an_axis(value: float, text: str) -> None:
    assert style.short(value) == text


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
