"""Facts of the machine, the runtime and the tool, as a run records them. What cannot be read is None."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import re
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import Any, Final

import psutil

from kvref_bench.runs.records import Resource

# An absolute path of two parts and more; the names of folders say nothing that a reader of a run needs.
PATH: Final = re.compile(r"(?:(?<![\w./])|(?<=sqlite:///))/(?:[\w.@+~%-]+/)+")
PASSWORD: Final = re.compile(r"(?<=://)(?P<user>[^:/@\s]*):[^/@\s]*(?=@)")
_SAMPLE_SECONDS: Final = 0.5  # seconds


def machine() -> dict[str, Any]:
    """Describe this machine; its name only as a hash, which identifies it without disclosing it."""
    frequency = psutil.cpu_freq() if hasattr(psutil, "cpu_freq") else None
    governor = _text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
    return {
        "cpu_model": _cpu_model(),
        "cores": os.cpu_count(),
        "cpu_mhz": frequency.current if frequency else None,
        "governor": governor.strip() or None,
        "memory": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "system": platform.system(),
        "hostname_hash": hashlib.sha256(platform.node().encode()).hexdigest()[:12],
        "loadavg_before": list(psutil.getloadavg()),
        # The averages remember what ran a minute ago: the run before.
        "busy_before": psutil.cpu_percent(_SAMPLE_SECONDS) / 100 * (os.cpu_count() or 1),
        "affinity": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
    }


def reading() -> Resource:
    """Read what all processes of this machine have used since it started, as role `machine`."""
    times, memory = psutil.cpu_times(), psutil.virtual_memory()
    system = times.system + getattr(times, "irq", 0.0) + getattr(times, "softirq", 0.0)
    user = times.user + getattr(times, "nice", 0.0)
    return Resource(time.time_ns(), "machine", 0, user, system, memory.total - memory.available)


def runtime() -> dict[str, Any]:
    """Describe the Python that drives the run."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "build": " ".join(platform.python_build()),
        "compiler": platform.python_compiler(),
        "pgo": profile_guided(),
        **{name: _version(name) for name in ("uvloop", "numpy", "pandas", "pyarrow")},
    }


def profile_guided() -> bool:
    """Return whether this interpreter was built with profile-guided optimization.

    It was configured so, or it is a package of Debian or Ubuntu, whose build runs `make profile-opt` instead.
    """
    configured = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    return configured or "deb_system" in sysconfig.get_scheme_names()


def tool(argv: list[str]) -> dict[str, Any]:
    """Describe kvref itself: its version and, in a checkout, the commit and whether files differ from it."""
    root = next((each for each in Path(__file__).resolve().parents if (each / ".git").exists()), None)
    commit = None if root is None else _git(root, "rev-parse", "HEAD")
    changes = None if root is None else _git(root, "status", "--porcelain", "--untracked-files=no")
    dirty = None if changes is None else bool(changes)
    return {"version": _version("kvref"), "git_commit": (commit or "").strip() or None, "dirty": dirty, "argv": argv}


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
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


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


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # another system, or not allowed
        return ""
