"""Metrics under the names of memcached_exporter, for dashboards and alerts that were made for memcached.

The exporter derives them from `stats` of memcached (prometheus/memcached_exporter, `pkg/exporter/exporter.go`). Metrics
of memory, slabs and evictions have no counterpart here: rows are in tables.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kvref.server.telemetry.event_counters import State
from kvref.server.telemetry.sources import Row, Source

ROWS: Final = (
    Row("memcached_up", "gauge", "1 while the server accepts connections, 0 while it starts or stops."),
    Row("memcached_version", "gauge", "Always 1; the label is the version of kvref.", "version"),
    Row("memcached_uptime_seconds", "gauge", "Seconds since the start of the server."),
    Row(
        "memcached_commands_total", "counter",
        "Commands by result: hit, miss or badval. A set without cas counts as a hit.", "command",
    ),
    Row("memcached_current_connections", "gauge", "Client connections currently open."),
    Row("memcached_connections_total", "counter", "Client connections accepted."),
    Row("memcached_connections_rejected_total", "counter", "Connections rejected beyond maxconns."),
    Row("memcached_read_bytes_total", "counter", "Bytes received from clients."),
    Row("memcached_written_bytes_total", "counter", "Bytes sent to clients."),
    Row("memcached_items_total", "counter", "Items stored."),
    Row("memcached_item_too_large_total", "counter", "Items rejected because they are too large."),
)  # fmt: skip
_HELP: Final = {row.name: row.help for row in ROWS}
# Samples of memcached_commands_total, each with its counter of `stats`.
_COMMANDS: Final = {
    **{(name, "hit"): f"{name}_hits" for name in ("get", "delete", "incr", "decr", "cas", "touch")},
    **{(name, "miss"): f"{name}_misses" for name in ("get", "delete", "incr", "decr", "cas", "touch")},
    ("cas", "badval"): "cas_badval",
    ("set", "hit"): "cmd_set",  # which has no cas in it, unlike memcached's
    ("flush", "hit"): "cmd_flush",
}
_COUNTERS: Final = {
    "memcached_connections_total": "total_connections",
    "memcached_connections_rejected_total": "rejected_conns",
    "memcached_read_bytes_total": "bytes_read",
    "memcached_written_bytes_total": "bytes_written",
    "memcached_items_total": "total_items",
    "memcached_item_too_large_total": "store_too_large",
}


class MemcachedMetrics(Collector):
    """Collects the metrics of `ROWS`.

    Args:
        source: of the numbers.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def describe(self) -> Iterable[Metric]:
        """Return no metrics: nothing is collected to register it."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of now."""
        source, totals = self._source, self._source.totals()
        yield _gauge("memcached_up", source.tally.state is State.SERVING)
        version = GaugeMetricFamily("memcached_version", _HELP["memcached_version"], labels=["version"])
        version.add_metric([source.info["version"]], 1)
        yield version
        yield _gauge("memcached_uptime_seconds", time.time() - source.started)
        name = "memcached_commands_total"
        commands = CounterMetricFamily(name, _HELP[name], labels=["command", "status"])
        for labels, counter in _COMMANDS.items():
            commands.add_metric(labels, totals[counter])
        yield commands
        yield _gauge("memcached_current_connections", source.connections())
        for name, counter in _COUNTERS.items():
            yield CounterMetricFamily(name, _HELP[name], value=totals[counter])


def _gauge(name: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, _HELP[name], value=value)
