"""What this process has used since a moment."""

from __future__ import annotations

import resource

import psutil

from kvref_bench.load.result import Usage


def now() -> resource.struct_rusage:
    """Take the moment."""
    return resource.getrusage(resource.RUSAGE_SELF)


def since(before: resource.struct_rusage) -> Usage:
    """Return what was used since `before`; its memory is that of now."""
    used = now()
    return Usage(
        user=used.ru_utime - before.ru_utime,
        system=used.ru_stime - before.ru_stime,
        rss=psutil.Process().memory_info().rss,
        voluntary=used.ru_nvcsw - before.ru_nvcsw,
        involuntary=used.ru_nivcsw - before.ru_nivcsw,
    )
