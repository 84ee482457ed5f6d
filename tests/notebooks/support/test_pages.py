"""Every chart of the notebooks is drawn from the committed small runs, and nothing that is written is cut off."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from support import batching, latency_charts, ratios, selfcheck, style, waiting
from support import gather as gathering
from support.gather import gather

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_bench.runs.folder import Run

pytestmark = pytest.mark.nightly

SMALL = Path(__file__).parents[3] / "notebooks" / "data" / "small"


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(gathering.VARIABLE, str(SMALL))
        return gathering.stored()


def _latency(chart: Callable[[waiting.Waiting], style.Slide]) -> Callable[[list[Run]], style.Slide]:
    return lambda _: chart(waiting.of(gather("get-vs-select", SMALL)))


def _lags(_: list[Run]) -> style.Slide:
    data = gather("bk-commit-lag", SMALL)
    return batching.lag_page(data, batching.lags_of(data))


def _overview(_: list[Run]) -> style.Slide:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(gathering.VARIABLE, str(SMALL))
        return ratios.overview(*ratios.everything())


def _clients(_: list[Run]) -> style.Slide:
    data = gather("client-overhead", SMALL)
    return selfcheck.client_page(selfcheck.clients_of(data), data)


CHARTS: dict[str, Callable[[list[Run]], style.Slide]] = {
    "percentiles": _latency(lambda seen: latency_charts.percentiles(seen.data, seen.curves)),
    "load": _latency(lambda seen: latency_charts.load(seen.data, seen.load)),
    "timings": _latency(lambda seen: latency_charts.timings(seen.data, seen.line, seen.both)),
    "overview": _overview,
    "surface": lambda _: batching.surface_page(gather("binlog-batch", SMALL)),
    "lags": _lags,
    "ceiling": lambda runs: selfcheck.ceiling_page(selfcheck.ceilings(gathering.points(runs)), gathering.foot(runs)),
    "clients": _clients,
}


@pytest.mark.parametrize("name", CHARTS)
def test_nothing_is_cut_off(runs: list[Run], name: str) -> None:
    page = CHARTS[name](runs)
    drawn, (width, height) = page.get_tightbbox(), style.SIZE
    assert drawn.x0 >= 0, "left"
    assert drawn.y0 >= 0, "below"
    assert drawn.x1 <= width, "right"
    assert drawn.y1 <= height, "above"


@pytest.mark.parametrize("name", CHARTS)
def test_the_source_line_names_version_day_and_machine(runs: list[Run], name: str) -> None:
    texts = [" ".join(text.get_text().split()) for text in CHARTS[name](runs).texts]
    (source,) = (text for text in texts if text.startswith("Source: "))
    assert re.search(r"kvref \d+\.\d+\.\d+, \d{4}-\d\d-\d\d\b.*, \d+ cores", source), source


@pytest.mark.parametrize(
    "page",
    [
        lambda: latency_charts.percentiles(None, {}),
        lambda: latency_charts.load(None, pd.DataFrame()),
        lambda: latency_charts.timings(None, "", {}),
        lambda: batching.lag_page(None, {}),
        lambda: selfcheck.ceiling_page(selfcheck.ceilings(gathering.points([])), ""),
        lambda: selfcheck.client_page(selfcheck.clients_of(None), None),
    ],
)
def test_without_runs_a_chart_says_so(page: Callable[[], style.Slide]) -> None:
    reply = " ".join(text.get_text() for text in page().findobj(lambda part: hasattr(part, "get_text")))
    assert "no" in reply.lower()
    assert not waiting.conclude(waiting.of(None)).known
