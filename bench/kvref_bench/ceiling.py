"""What the generator itself can do: the sessions of a point against a server that does nothing."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from kvref_bench.load import coordinator, histogram, null
from kvref_bench.load.work import Clock
from kvref_bench.runs.records import Merged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvref_bench.load.engine import Engine
    from kvref_bench.load.records import Timing
    from kvref_bench.load.work import Work
    from kvref_bench.watch import Watch

_WARMUP: Final = 0.2
_MEASURE: Final = 1.0  # seconds at most
_AT_HALF: Final[tuple[Timing, ...]] = ("lag", "intended")


class Ceilings:
    """Measures each shape of requests once.

    measure: seconds for each, of which not more than one is used.
    """

    def __init__(self, engine: Engine, watch: Watch, measure: float) -> None:
        self._engine = engine
        self._watch = watch
        self._clock = Clock(_WARMUP, min(measure, _MEASURE))
        self._known: dict[str, float] = {}
        self.facts: list[dict[str, Any]] = []

    def of(self, work: Work) -> float | None:
        """Return operations a second without a server; None if it was not measured."""
        return self._known.get(_name(work))

    def measure(self, works: Iterable[Work]) -> None:
        """Measure the shapes of several points; the first one at half its rate too, for the lag of the open loop.

        Raises:
            BenchError: the null responder does not start, or a worker does not reach it.
        """
        for shape in {_name(work): _shape(work) for work in works}.values():
            if self._watch.stopping():
                return
            with null.responder(shape, self._engine.control_host) as address:
                merged = Merged.of(coordinator.measure(address, shape, self._clock, self._engine, self._watch))
                rate, cpu = merged.per_second, merged.usage.cpu / merged.ops * 1e6 if merged.ops else None
                facts = {**_facts(shape), "operations_per_second": rate, "cpu_us_per_operation": cpu}
                if not self.facts and rate:
                    half = replace(self._clock, rate=rate / 2)
                    lagging = coordinator.measure(address, shape, half, self._engine, self._watch)
                    for timing in _AT_HALF:
                        facts[f"{timing}_p99_ns_at_half"] = histogram.quantile(Merged.of(lagging).bins(timing), 0.99)
            self._known[_name(shape)] = rate
            self.facts.append(facts)


def _shape(work: Work) -> Work:
    # Everything else makes no other bytes.
    return replace(
        work, protocol="null", route="none", mapping="", verbs={"get": 1.0}, statements={}, operations=None, seed=0,
        driver="wire",
    )  # fmt: skip


def _name(work: Work) -> str:
    return str(asdict(_shape(work)))


def _facts(shape: Work) -> dict[str, Any]:
    return {
        "sessions": shape.sessions,
        "depth": shape.depth,
        "multiget": shape.multiget,
        "key_length": shape.keys.length,
        "value_sizes": shape.values.sizes,
    }
