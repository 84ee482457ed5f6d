"""What a server shows to Prometheus: read when it is scraped, so that no command costs more for it.

Needs the extra `metrics`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from kvref.engine.counters import COUNTED, counters_of
from kvref.protocol.command_table import TABLE, TIMED
from kvref.server.telemetry.command_times import COMMAND_BOUNDS, MICROSECOND, Histogram, summed
from kvref.server.telemetry.event_counters import BOUNDS, REPLICA, ROW_CACHE, EventCounters, State
from kvref.server.telemetry.lifecycle import EVERY
from kvref.server.telemetry.sources import Source

# Values of the label `command`, each with the counters of `stats` that add up to it.
_COMMAND_COUNTERS: Final = {name: counters_of(name) for row in TABLE for name in row.metrics}
_WITH_HITS: Final = tuple(name for name in _COMMAND_COUNTERS if f"{name}_hits" in COUNTED)
# Of several processes these are the first one's; the others are added up.
_NOT_SUMMED: Final = ("process_start_time_seconds", "process_max_fds")


@dataclass(frozen=True, slots=True)
class Family:
    """One metric, as the documentation lists it; `label` is empty if it has one sample."""

    name: str
    kind: str
    help: str
    label: str = ""


METRICS: Final = {
    row.name: row
    for row in (
        Family(
            "kvref_info", "gauge", "Always 1; the labels are version, profile, kind of store and number of workers.",
            "…",
        ),
        Family("kvref_up", "gauge", "1 while the server accepts connections, 0 while it starts or stops."),
        Family("kvref_start_time_seconds", "gauge", "Start time of the server, as UNIX time in seconds."),
        Family(
            "kvref_commands_total", "counter",
            "Commands processed. Each key of a get counts as one; set includes add, replace, append and prepend."
            " `stats reset` resets this counter, as it resets `stats`.", "command",
        ),
        Family("kvref_hits_total", "counter", "Commands that found their row.", "command"),
        Family("kvref_misses_total", "counter", "Commands that found no row.", "command"),
        Family("kvref_cas_badval_total", "counter", "cas commands rejected because the row's CAS value differed."),
        Family(
            "kvref_server_errors_total", "counter",
            "Commands that failed in the store: SERVER_ERROR replies other than those for values that are too large.",
        ),
        Family("kvref_read_bytes_total", "counter", "Bytes received from clients."),
        Family("kvref_written_bytes_total", "counter", "Bytes sent to clients."),
        Family("kvref_connections", "gauge", "Client connections currently open."),
        Family("kvref_connections_total", "counter", "Client connections accepted."),
        Family(
            "kvref_connections_ended_total", "counter",
            "Connections closed by the server: beyond maxconns, idle, or using another protocol such as HTTP.",
            "reason",
        ),
        Family("kvref_expired_rows_removed_total", "counter", "Expired rows removed in the background."),
        Family("kvref_authentications_total", "counter", "Authentication attempts.", "result"),
        Family("kvref_batches_open", "gauge", "Connections with an open batch, updated each second."),
        Family(
            "kvref_commit_seconds", "histogram",
            "Duration of a commit in the store, in seconds: fdatasync of SQLite's write-ahead log, or COMMIT of a"
            " batch or of grouped writes.",
        ),
        Family(
            "kvref_command_seconds", "histogram",
            "Duration of a command from its start to the sending of its reply, in seconds, with waits for locks and"
            " commits and without the time that its input waits for earlier commands.", "command",
        ),
        Family(
            "kvref_store_up", "gauge",
            "1 if the store answered the last health check, which runs each second; otherwise 0.", "process",
        ),
        Family("kvref_loop_lag_seconds", "gauge", "Delay of the event loop's one-second timer, in seconds.", "process"),
        Family(
            "kvref_row_cache_hits_total", "counter",
            "Keys of gets answered from the row cache over MySQL or MariaDB (`row_cache_binlog=1`); like the other"
            " numbers of that cache, updated each second.",
        ),
        Family("kvref_row_cache_misses_total", "counter", "Keys of gets for which that cache queried the database."),
        Family(
            "kvref_row_cache_stale_total", "counter",
            "Those of kvref_row_cache_misses_total whose row was cached and not known to be current.",
        ),
        Family("kvref_row_cache_evictions_total", "counter", "Rows displaced by others because of `row_cache_bytes`."),
        Family(
            "kvref_row_cache_lag_seconds", "gauge",
            "Time for which the last gets of cached rows waited for the binary log, in seconds; the longest of all"
            " processes.",
        ),
        Family(
            "kvref_row_cache_age_seconds", "gauge",
            "Time by which the last replies with cached rows may have been out of date, in seconds; the longest of all"
            " processes.",
        ),
        Family("kvref_row_cache_following", "gauge", "Binary logs that are followed, of each process and store."),
        Family(
            "kvref_replica_gets_total", "counter",
            "Keys of gets answered by a secondary (`reads=replica` or `reads=session` in the DSN); like the next two,"
            " updated each second.",
        ),
        Family(
            "kvref_replica_behind_total", "counter",
            "Keys of gets answered by the primary because the secondary had not executed the connection's last write"
            " in time.",
        ),
        Family(
            "kvref_replica_unavailable_total", "counter",
            "Keys of gets answered by the primary because no secondary could be read.",
        ),
        Family("kvref_reloads_total", "counter", "Configuration reloads on SIGHUP, taken or refused.", "result"),
        Family("kvref_worker_restarts_total", "counter", "Worker processes that ended and were restarted."),
        Family(
            "process_virtual_memory_bytes", "gauge",
            "Virtual memory of all processes, in bytes; shared memory counts once per process.",
        ),
        Family(
            "process_resident_memory_bytes", "gauge",
            "Resident memory of all processes, in bytes; shared memory counts once per process.",
        ),
        Family("process_start_time_seconds", "gauge", "Start time of the listening process, as UNIX time in seconds."),
        Family("process_cpu_seconds_total", "counter", "User and system CPU time of all processes, in seconds."),
        Family("process_open_fds", "gauge", "Open file descriptors of all processes."),
        Family("process_max_fds", "gauge", "Maximum number of open file descriptors per process."),
    )
}  # fmt: skip

# Under the names of memcached_exporter, for dashboards and alerts that were made for memcached. The exporter derives
# them from `stats` of memcached (prometheus/memcached_exporter, `pkg/exporter/exporter.go`). Metrics of memory, slabs
# and evictions have no counterpart here: rows are in tables.
MEMCACHED_METRICS: Final = {
    row.name: row
    for row in (
        Family("memcached_up", "gauge", "1 while the server accepts connections, 0 while it starts or stops."),
        Family("memcached_version", "gauge", "Always 1; the label is the version of kvref.", "version"),
        Family("memcached_uptime_seconds", "gauge", "Seconds since the start of the server."),
        Family(
            "memcached_commands_total", "counter",
            "Commands by result: hit, miss or badval. A set without cas counts as a hit.", "command",
        ),
        Family("memcached_current_connections", "gauge", "Client connections currently open."),
        Family("memcached_connections_total", "counter", "Client connections accepted."),
        Family("memcached_connections_rejected_total", "counter", "Connections rejected beyond maxconns."),
        Family("memcached_read_bytes_total", "counter", "Bytes received from clients."),
        Family("memcached_written_bytes_total", "counter", "Bytes sent to clients."),
        Family("memcached_items_total", "counter", "Items stored."),
        Family("memcached_item_too_large_total", "counter", "Items rejected because they are too large."),
    )
}  # fmt: skip
# Values of the label `status`, by the end of the name of a counter; commands without such counters count as hits.
_STATUSES: Final = {"hits": "hit", "misses": "miss", "badval": "badval"}
# Samples of memcached_commands_total, each with its counter of `stats`. `set` has no `cas` in it, unlike memcached's.
_MEMCACHED_COMMANDS: Final = {
    (name, _STATUSES.get(counter.removeprefix(f"{name}_"), "hit")): counter
    for name, counters in _COMMAND_COUNTERS.items()
    for counter in counters
}
_MEMCACHED_COUNTERS: Final = {
    "memcached_connections_total": "total_connections",
    "memcached_connections_rejected_total": "rejected_conns",
    "memcached_read_bytes_total": "bytes_read",
    "memcached_written_bytes_total": "bytes_written",
    "memcached_items_total": "total_items",
    "memcached_item_too_large_total": "store_too_large",
}
_ALL: Final = METRICS | MEMCACHED_METRICS


def registry(source: Source) -> CollectorRegistry:
    """Return what exposes a server."""
    made = CollectorRegistry()
    made.register(_Numbers(source))
    return made


class _Numbers(Collector):
    def __init__(self, source: Source) -> None:
        self._source = source

    def collect(self) -> Iterator[Metric]:
        source, totals = self._source, self._source.totals()
        info = _gauge("kvref_info", list(source.info))
        info.add_metric(list(source.info.values()), 1)
        yield info
        yield _gauge("kvref_up", value=source.tally.state is State.SERVING)
        yield _gauge("kvref_start_time_seconds", value=source.started)
        yield from _commands(totals)
        yield _gauge("kvref_connections", value=source.connections())
        yield from _shared(source.tally)
        yield from _processes(source.pids())
        yield from _memcached(source, totals)


def _gauge(name: str, labels: list[str] | None = None, value: float | None = None) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, _ALL[name].help, value=value, labels=labels)


def _counter(name: str, labels: list[str] | None = None, value: float | None = None) -> CounterMetricFamily:
    return CounterMetricFamily(name, _ALL[name].help, value=value, labels=labels)


def _labelled(name: str, numbers: dict[str, int]) -> CounterMetricFamily:
    family = _counter(name, [METRICS[name].label])
    for value, number in numbers.items():
        family.add_metric([value], number)
    return family


def _histogram(name: str, by_label: Mapping[str, list[Histogram]], bounds: Sequence[float]) -> HistogramMetricFamily:
    """Return the histograms of all processes by the value of their label; labelled ones that are empty are left out."""
    label = METRICS[name].label
    family = HistogramMetricFamily(name, _ALL[name].help, labels=[label] if label else [])
    for value, histograms in by_label.items():
        buckets, seconds = summed(histograms, bounds)
        if buckets[-1][1] or not label:
            family.add_metric([value] if label else [], buckets, seconds)
    return family


def _commands(totals: dict[str, int]) -> Iterator[Metric]:
    yield _labelled(
        "kvref_commands_total", {name: sum(map(totals.__getitem__, of)) for name, of in _COMMAND_COUNTERS.items()}
    )
    yield _labelled("kvref_hits_total", {name: totals[f"{name}_hits"] for name in _WITH_HITS})
    yield _labelled("kvref_misses_total", {name: totals[f"{name}_misses"] for name in _WITH_HITS})
    yield _counter("kvref_cas_badval_total", value=totals["cas_badval"])
    yield _counter("kvref_read_bytes_total", value=totals["bytes_read"])
    yield _counter("kvref_written_bytes_total", value=totals["bytes_written"])
    yield _counter("kvref_expired_rows_removed_total", value=totals["crawler_reclaimed"])
    yield _counter("kvref_connections_total", value=totals["total_connections"])
    ended = {
        "maxconns": totals["rejected_conns"],
        "idle_timeout": totals["idle_kicks"],
        "foreign_protocol": totals["foreign_protocol_conns"],
    }
    yield _labelled("kvref_connections_ended_total", ended)
    failed = totals["auth_errors"]
    yield _labelled("kvref_authentications_total", {"known": totals["auth_cmds"] - failed, "failed": failed})


def _shared(tally: EventCounters) -> Iterator[Metric]:
    processes = tally.processes
    yield _counter("kvref_server_errors_total", value=sum(process.errors for process in processes))
    yield _gauge("kvref_batches_open", value=sum(process.batches for process in processes))
    yield _histogram("kvref_commit_seconds", {"": [process.commits for process in processes]}, BOUNDS)
    by_name = {name: [process.commands.of[name] for process in processes] for name in TIMED}
    yield _histogram("kvref_command_seconds", by_name, COMMAND_BOUNDS)
    up, lag = (_gauge(each, [METRICS[each].label]) for each in ("kvref_store_up", "kvref_loop_lag_seconds"))
    for number, process in enumerate(processes, 1):
        if process.pid:
            up.add_metric([str(number)], process.store_error == "")
            lag.add_metric([str(number)], round(max(process.lag, process.silence - EVERY), 6))
    yield from (up, lag)
    yield from _of_store([process.of_store for process in processes])
    yield _labelled("kvref_reloads_total", dict(zip(("taken", "refused"), tally.reloads, strict=True)))
    yield _counter("kvref_worker_restarts_total", value=tally.restarts)


def _of_store(processes: list[dict[str, int]]) -> Iterator[Metric]:
    sums = {name: sum(each[name] for each in processes) for name in processes[0]}
    for name in ROW_CACHE:
        yield _counter(f"kvref_{name}_total", value=sums[name])
    for name in ("row_cache_lag", "row_cache_age"):
        longest = max(each[f"{name}_us"] for each in processes)
        yield _gauge(f"kvref_{name}_seconds", value=longest * MICROSECOND)
    yield _gauge("kvref_row_cache_following", value=sums["row_cache_following"])
    for name in REPLICA:
        yield _counter(f"kvref_{name}_total", value=sums[name])


def _processes(pids: list[int]) -> Iterator[Metric]:
    families: dict[str, Metric] = {}
    for pid in pids:
        for family in ProcessCollector(pid=partial(int, pid), registry=None).collect():
            (sample,) = family.samples
            known = families.get(sample.name)
            if known is None:
                family.documentation = METRICS[sample.name].help
                families[sample.name] = family
            elif sample.name not in _NOT_SUMMED:
                (before,) = known.samples
                known.samples = [before._replace(value=before.value + sample.value)]
    yield from families.values()


def _memcached(source: Source, totals: dict[str, int]) -> Iterator[Metric]:
    yield _gauge("memcached_up", value=source.tally.state is State.SERVING)
    version = _gauge("memcached_version", ["version"])
    version.add_metric([source.info["version"]], 1)
    yield version
    yield _gauge("memcached_uptime_seconds", value=time.time() - source.started)
    commands = _counter("memcached_commands_total", ["command", "status"])
    for labels, counter in _MEMCACHED_COMMANDS.items():
        commands.add_metric(labels, totals[counter])
    yield commands
    yield _gauge("memcached_current_connections", value=source.connections())
    for name, counter in _MEMCACHED_COUNTERS.items():
        yield _counter(name, value=totals[counter])
