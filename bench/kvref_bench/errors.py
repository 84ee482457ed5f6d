"""What the benchmark raises."""

from __future__ import annotations

from kvref.errors import KvrefError


class BenchError(KvrefError):
    """A scenario, a run or an endpoint that cannot be measured, with what to do about it."""
