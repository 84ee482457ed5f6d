"""Where CPU time goes while `micro.py` answers: samples by function, and how often each is called.

Samples cost next to nothing and so distort nothing; they see Python functions, and time in C counts for the one that
called it. Calls are counted in a run of their own, since counting slows what it counts.
"""

from __future__ import annotations

import cProfile
import pstats
import signal
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import FrameType

EVERY: Final = 0.001  # CPU seconds between samples, if the kernel counts so finely (often 0.004)
SHOWN: Final = 25  # functions
ROOMS: Final = ("kvref/protocol", "kvref/engine", "kvref/server", "kvref/storage", "kvref/collations", "bench/micro")

Place = tuple[str, int, str]  # file, first line, function


async def profiled(answer: Callable[[], Awaitable[None]], exchanges: int, seconds: float) -> dict[str, Any]:
    """Profile something.

    Args:
        answer: answers so many exchanges. seconds: of CPU time to be sampled, at least one call.

    Returns:
        Shares by room of the code, and by function, with the calls of each exchange.
    """
    samples = await _samples(answer, seconds)
    calls = await _calls(answer, exchanges)
    total = sum(samples.values())
    rooms: Counter[str] = Counter()
    for (file, _, _), count in samples.items():
        rooms[next((room for room in ROOMS if file.startswith(room)), "other")] += count
    return {
        "samples": total,
        "calls": sum(calls.values()),
        "rooms": {room: count / total for room, count in rooms.most_common()},
        "functions": [
            {"file": place[0], "function": place[2], "share": count / total, "calls": calls.get(place, 0.0)}
            for place, count in samples.most_common(SHOWN)
        ],
    }


async def _samples(answer: Callable[[], Awaitable[None]], seconds: float) -> Counter[Place]:
    found: Counter[Place] = Counter()

    def take(_: int, frame: FrameType | None) -> None:
        if frame is not None:
            code = frame.f_code
            found[_short(code.co_filename), code.co_firstlineno, code.co_name] += 1

    before = signal.signal(signal.SIGPROF, take)
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)
    try:
        until = time.process_time() + seconds
        while time.process_time() < until or not found:
            await answer()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return found


async def _calls(answer: Callable[[], Awaitable[None]], exchanges: int) -> dict[Place, float]:
    profile = cProfile.Profile()
    with profile:
        await answer()
    told: Any = pstats.Stats(profile)
    found: Counter[Place] = Counter()
    for (file, line, name), (_, calls, *_) in told.stats.items():
        found[_short(file), line, name] += calls
    return {place: calls / exchanges for place, calls in found.items()}


def _short(file: str) -> str:
    """Return a file from its package on."""
    parts = Path(file).parts
    for root in ("kvref", "bench"):
        if root in parts:
            return "/".join(parts[len(parts) - 1 - parts[::-1].index(root) :])
    return parts[-1] if parts else file
