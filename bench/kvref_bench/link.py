"""A link of known rate and delay on one machine: a network namespace with one way out, a pair of virtual interfaces.

What runs in it reaches the servers of the machine, those that listen on loopback too, through that link. Needs Linux,
root and iproute2.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLONE_NEWNET: Final = 0x40000000
_UNITS: Final = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_TICKS: Final = 250  # a second, of the kernel's clock: what may pass in one of them is the least a bucket must hold
_BUCKET: Final = 32 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class Shape:
    """What a link lets through.

    rate: bits a second, each way. delay: seconds, each way; 0: none is added.
    """

    rate: float
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace that is there: its name, the address of the machine as it sees it, and its own."""

    name: str
    outside: str
    inside: str


def shape(text: str) -> Shape:
    """Read RATE or RATE,DELAY, such as `1gbit` or `100mbit,2ms`.

    Raises:
        BenchError: it is not so written.
    """
    read = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]bit)(?:,(\d+(?:\.\d+)?)(us|ms))?", text)
    if read is None or not float(read[1]):
        raise BenchError(f"link {text!r}: write RATE or RATE,DELAY, for example 1gbit or 100mbit,2ms")
    delay = float(read[3] or 0) * {"us": 1e-6, "ms": 1e-3, None: 0}[read[4]]
    return Shape(float(read[1]) * _UNITS[read[2]], delay)


@contextmanager
def namespace(link: Shape | None = None, number: int = 0) -> Iterator[Namespace]:
    """Make a namespace for the block.

    Args:
        link: how its link is shaped, and what is on the machine's loopback is reached through it; None: a link as fast
            as the machine, and a loopback of its own.
        number: of several in one process, 0 to 7.

    Raises:
        BenchError: not root, no iproute2, or a kernel without what the shape needs.
    """
    _must_be_possible()
    place = (os.getpid() * 8 + number) % 32768
    # 198.18.0.0/15 is kept for benchmarks (RFC 2544).
    net = f"198.{18 + place // 16384}.{place // 64 % 256}."
    here = Namespace(f"kvref-{os.getpid()}-{number}", net + str(place % 64 * 4 + 1), net + str(place % 64 * 4 + 2))
    ends = f"kvr{os.getpid()}n{number}h", f"kvr{os.getpid()}n{number}n"
    _call("ip", "netns", "add", here.name)
    try:
        _call("ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1], "netns", here.name)
        _call("ip", "addr", "add", f"{here.outside}/30", "dev", ends[0])
        _call("ip", "link", "set", ends[0], "up")
        _call("ip", "-n", here.name, "addr", "add", f"{here.inside}/30", "dev", ends[1])
        _call("ip", "-n", here.name, "link", "set", ends[1], "up")
        # To every other address of the machine too.
        _call("ip", "-n", here.name, "route", "add", "default", "via", here.outside)
        if link is None:
            _call("ip", "-n", here.name, "link", "set", "lo", "up")
        else:
            _reach_loopback(here, ends)
            _call("tc", "qdisc", "add", "dev", ends[0], "root", *_discipline(link))
            _call("tc", "-n", here.name, "qdisc", "add", "dev", ends[1], "root", *_discipline(link))
        yield here
    finally:
        # The pair goes first, by hand: with the namespace it goes only when nothing runs in there any more.
        subprocess.run(("ip", "link", "del", ends[0]), capture_output=True, check=False)
        _call("ip", "netns", "del", here.name)


def enter(name: str) -> None:
    """Put this thread, and what it starts from now on, into a namespace. Raises BenchError."""
    # os.setns comes with Python 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/run/netns", name).open("rb") as opened:
        if libc.setns(opened.fileno(), _CLONE_NEWNET):
            raise BenchError(f"namespace {name}: {os.strerror(ctypes.get_errno())}")


def _must_be_possible() -> None:
    lacks = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    if lacks:
        raise BenchError(f"a network namespace needs {' and '.join(lacks)}: install the package iproute2")
    if os.geteuid() != 0:
        raise BenchError("a network namespace needs root: run as root, or leave out --via-namespace")


def _reach_loopback(here: Namespace, ends: tuple[str, str]) -> None:
    # Its own loopback stays down, so that 127.0.0.0/8 can leave the namespace; both ends need a setting that allows
    # this.
    setting = "net.ipv4.conf.{}.route_localnet"
    Path("/proc/sys", setting.format(ends[0]).replace(".", "/")).write_text("1")
    inner = Path("/proc/sys", setting.format(ends[1]).replace(".", "/"))
    _call("ip", "netns", "exec", here.name, "sh", "-c", f"echo 1 > {inner}")
    _call("ip", "-n", here.name, "route", "add", "127.0.0.0/8", "via", here.outside, "src", here.inside)


def _discipline(link: Shape) -> tuple[str, ...]:
    rate = f"{link.rate:.0f}bit"
    if link.delay:
        return ("netem", "delay", f"{link.delay * 1e6:.0f}us", "rate", rate, "limit", "100000")
    bucket = max(_BUCKET, int(link.rate / 8 / _TICKS))
    return ("tbf", "rate", rate, "burst", str(bucket), "latency", "50ms")


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    said = done.stderr.strip()
    if "qdisc kind is unknown" in said:
        kind = "netem, which delays: leave out the delay" if "netem" in command else "tbf: leave out --via-namespace"
        raise BenchError(f"this kernel has no {kind}")
    raise BenchError(f"`{' '.join(command)}`: {said}")
