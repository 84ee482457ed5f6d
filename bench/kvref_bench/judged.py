"""No number without a verdict: `kvref conform` on the servers of a run, before they are measured."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from kvref_bench.peers import PeerSpec
    from kvref_testbed.targets import Progress


def judge(specs: Sequence[PeerSpec], folder: Path, progress: Progress) -> tuple[PeerSpec, ...]:
    """Judge each endpoint that has no report yet; SQL servers have no verdict.

    A target is judged in an instance of its own: the suite leaves rows and restarts behind.

    folder: reports go to `conformance/NAME` in it.

    Raises:
        BenchError: one could not be judged.
    """
    return tuple(spec if spec.endpoint is None or spec.report else _judged(spec, folder, progress) for spec in specs)


def fix(server: Mapping[str, Any]) -> str:
    """Say how to get a verdict on a server of a run that has none."""
    if server["verdict"] is not None or server["address"] is None:
        return ""
    return "; add --conform, or --report DIR with what `kvref conform --report DIR` wrote"


def _judged(spec: PeerSpec, folder: Path, progress: Progress) -> PeerSpec:
    assert spec.endpoint is not None, "only endpoints are judged"
    name = spec.name or spec.endpoint
    report = folder / "conformance" / re.sub(r"[^\w.-]", "_", name)
    asked = [spec.endpoint] if ":" in spec.endpoint else ["--target", spec.endpoint]
    for option in ("sql", "reload", "restart"):
        value = getattr(spec, option)
        asked += [f"--{option}={value}"] if value is not None else []
    asked += ["--allow-destructive"] if spec.allow_destructive else []
    progress.step(f"{name}: kvref conform, which takes some minutes")
    # A process of its own: pytest and what it imports stay out of the process that measures.
    command = [sys.executable, "-m", "kvref", "conform", *asked, f"--report={report}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1}:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise BenchError(
            f"{name} could not be judged: {' '.join(last)}; leave out --conform to measure it all the same"
        )
    return replace(spec, report=report)
