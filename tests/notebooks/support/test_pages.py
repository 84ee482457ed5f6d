"""Every chart of the notebooks is drawn from the committed small runs, and nothing that is written is cut off."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from support import (
    batching,
    hypotheses,
    inventory,
    latency_charts,
    matrix,
    pairs,
    selfcheck,
    style,
    waiting,
)
from support.gather import gather

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_bench.runs.run import Run

SMALL = Path(__file__).parents[3] / "notebooks" / "data" / "small"


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return inventory.stored(SMALL)


def _latency(chart: Callable[[waiting.Waiting], style.Slide]) -> Callable[[list[Run]], style.Slide]:
    return lambda _: chart(waiting.of(gather("get-vs-select", SMALL)))


def _lags(_: list[Run]) -> style.Slide:
    data = gather("bk-commit-lag", SMALL)
    return batching.lag_page(data, batching.lags_of(data))


def _generator(runs: list[Run]) -> style.Slide:
    return selfcheck.lag_page(
        selfcheck.lags(inventory.points(runs), selfcheck.calibrations(runs)), inventory.foot(runs)
    )


def _clients(_: list[Run]) -> style.Slide:
    data = gather("client-overhead", SMALL)
    return selfcheck.client_page(selfcheck.clients_of(data), data)


def _settings(_: list[Run]) -> style.Slide:
    data = gather("ro-1m-int", SMALL)
    return pairs.page(pairs.every_setting(data), data)


def _servers(_: list[Run]) -> style.Slide:
    data = gather("ro-1m-int", SMALL)
    return pairs.page(pairs.every_server(data), data)


CHARTS: dict[str, Callable[[list[Run]], style.Slide]] = {
    "inventory": lambda runs: inventory.page(runs, inventory.points(runs)),
    "percentiles": _latency(lambda seen: latency_charts.percentiles(seen.data, seen.curves)),
    "above": _latency(lambda seen: latency_charts.above(seen.data, seen.curves)),
    "load": _latency(lambda seen: latency_charts.load(seen.data, seen.load)),
    "timings": _latency(lambda seen: latency_charts.timings(seen.data, seen.line, seen.both)),
    "seconds": _latency(lambda seen: latency_charts.seconds(seen.data, seen.line, seen.heat, seen.seconds)),
    "settings": _settings,
    "servers": _servers,
    "matrix": lambda _: matrix.page(matrix.read_all(SMALL / "reports")),
    "hypotheses": lambda _: hypotheses.page(hypotheses.test(hypotheses.HYPOTHESES, SMALL), "Source: small runs."),
    "surface": lambda _: batching.surface_page(gather("binlog-batch", SMALL)),
    "lags": _lags,
    "ceiling": lambda runs: selfcheck.ceiling_page(selfcheck.ceilings(inventory.points(runs)), inventory.foot(runs)),
    "clients": _clients,
    "generator": _generator,
    "errors": lambda _: selfcheck.error_page(selfcheck.errors_by_shape(5_000, seed=1)),
}


@pytest.mark.parametrize("name", CHARTS)
def test_nothing_is_cut_off(runs: list[Run], name: str) -> None:
    page = CHARTS[name](runs)
    drawn, (width, height) = page.get_tightbbox(), style.SIZE
    assert drawn.x0 >= 0, "left"
    assert drawn.y0 >= 0, "below"
    assert drawn.x1 <= width, "right"
    assert drawn.y1 <= height, "above"


@pytest.mark.parametrize(
    "page",
    [
        lambda: inventory.page([], inventory.points([])),
        lambda: latency_charts.percentiles(None, {}),
        lambda: latency_charts.above(None, {}),
        lambda: latency_charts.load(None, pd.DataFrame()),
        lambda: latency_charts.timings(None, "", {}),
        lambda: latency_charts.seconds(None, "", pd.DataFrame(), {}),
        lambda: pairs.page(pairs.every_setting(None), None),
        lambda: hypotheses.page([], ""),
        lambda: batching.lag_page(None, {}),
        lambda: selfcheck.ceiling_page(selfcheck.ceilings(inventory.points([])), ""),
        lambda: selfcheck.client_page(selfcheck.clients_of(None), None),
        lambda: selfcheck.lag_page(selfcheck.lags(inventory.points([]), selfcheck.calibrations([])), ""),
    ],
)
def test_without_runs_a_chart_says_so(page: Callable[[], style.Slide]) -> None:
    said = " ".join(text.get_text() for text in page().findobj(lambda part: hasattr(part, "get_text")))
    assert "no" in said.lower()
    assert not waiting.conclude(waiting.of(None)).known
    assert not inventory.conclude([], inventory.points([])).known
