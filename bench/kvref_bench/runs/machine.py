"""Facts of the machine, the runtime and the tool, as a run records them. What cannot be read is None."""

from __future__ import annotations

import gc
import hashlib
import importlib.metadata
import os
import platform
import re
import subprocess
import time
from pathlib import Path
from typing import Any, Final

import psutil

from kvref_bench.runs.records import Resource

# An absolute path of two parts and more; the names of folders say nothing that a reader of a run needs.
PATH: Final = re.compile(r"(?:(?<![\w./])|(?<=sqlite:///))/(?:[\w.@+~%-]+/)+")
PASSWORD: Final = re.compile(r"(?<=://)(?P<user>[^:/@\s]*):[^/@\s]*(?=@)")
LOOPS: Final = 20_000
_LOOK: Final = 0.5  # seconds


def machine() -> dict[str, Any]:
    """Describe this machine; its name only as a hash, which identifies it without disclosing it."""
    cpu = Path("/sys/devices/system/cpu")
    frequency = psutil.cpu_freq() if hasattr(psutil, "cpu_freq") else None
    return {
        "cpu_model": _cpu_model(),
        "cores": os.cpu_count(),
        "cpu_mhz": frequency.current if frequency else None,
        "governor": _line(cpu / "cpu0/cpufreq/scaling_governor"),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
        "memory": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "system": platform.system(),
        "virt": _virtual(),
        "hostname_hash": hashlib.sha256(platform.node().encode()).hexdigest()[:12],
        "loadavg_before": list(psutil.getloadavg()),
        # The averages remember what ran a minute ago: the run before.
        "busy_before": psutil.cpu_percent(_LOOK) / 100 * (os.cpu_count() or 1),
        "boot_time": psutil.boot_time(),
        "aslr": _line(Path("/proc/sys/kernel/randomize_va_space")),
        "affinity": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
    }


def reading() -> Resource:
    """Read what all processes of this machine have used since it started, as role `machine`."""
    times, memory = psutil.cpu_times(), psutil.virtual_memory()
    system = times.system + getattr(times, "irq", 0.0) + getattr(times, "softirq", 0.0)
    return Resource(
        time.time_ns(), "machine", 0, times.user + getattr(times, "nice", 0.0), system, memory.total - memory.available
    )


def runtime() -> dict[str, Any]:
    """Describe the Python that drives the run."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        **{name: _version(name) for name in ("uvloop", "numpy", "pandas", "pyarrow", "scipy")},
        "gc": {"enabled": gc.isenabled(), "threshold": list(gc.get_threshold())},
        # The folders may be private; only that the variable was set is recorded.
        "env": {
            name: "(folders)" if os.sep in text else text
            for name, text in sorted(os.environ.items())
            if name.startswith("PYTHON")
        },
    }


def clock() -> dict[str, Any]:
    """Describe the clock that durations are taken with, and what a reading of it costs."""
    facts = time.get_clock_info("perf_counter")
    began = time.perf_counter_ns()
    for _ in range(LOOPS):
        time.perf_counter_ns()
    cost = (time.perf_counter_ns() - began) / LOOPS
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    return {
        "source": _line(source) or facts.implementation,
        "resolution": facts.resolution,
        "perf_counter_cost_ns": round(cost, 1),
    }


def tool(argv: list[str]) -> dict[str, Any]:
    """Describe kvref itself: its version and, in a checkout, the commit and whether files differ from it."""
    commit, dirty = _checkout(Path(__file__).resolve().parent)
    return {"version": _version("kvref"), "git_commit": commit, "dirty": dirty, "argv": argv}


def public(value: Any) -> Any:
    """Take passwords out of URLs and folders out of absolute paths, in values of any depth; a file keeps its name."""
    if isinstance(value, str):
        return PATH.sub("", PASSWORD.sub(r"\g<user>", value))
    if isinstance(value, dict):
        return {name: public(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [public(each) for each in value]
    return value


def _cpu_model() -> str:
    for line in (_text(Path("/proc/cpuinfo")) or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _virtual() -> str | None:
    """Name the virtual machine's maker; `none` on bare metal, None where the kernel does not tell."""
    cpu = _text(Path("/proc/cpuinfo"))
    if cpu is None:
        return None
    if not re.search(r"^flags\s*:.*\bhypervisor\b", cpu, re.MULTILINE):
        return "none"
    told = (_line(Path("/sys/class/dmi/id") / name) for name in ("sys_vendor", "product_name"))
    return " ".join(filter(None, told)) or "hypervisor"


def _checkout(folder: Path) -> tuple[str | None, bool | None]:
    root = next((each for each in folder.parents if (each / ".git").exists()), None)
    if root is None:
        return None, None
    commit = _git(root, "rev-parse", "HEAD")
    changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    return (commit.strip() or None, bool(changes)) if commit is not None and changes is not None else (None, None)


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):  # no git, or not its checkout: the run is not less true
        return None
    return done.stdout


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _line(path: Path) -> str | None:
    text = _text(path)
    return text.strip() or None if text is not None else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # another system, or not allowed
        return None
