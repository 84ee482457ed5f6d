"""Hosts on one machine, each a network namespace on a common bridge, and partitions between them.

Needs Linux, root and iproute2. A partition is silent: each side sends to a hardware address that no interface has.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from kvref_testbed.targets import MissingError, needs
from kvref_testbed.targets.mysqld import Place

_NO_INTERFACE = "02:00:00:00:00:01"
_INSIDE = "eth0"


@dataclass(frozen=True)
class Node:
    """The machine itself, or a host on it.

    Args:
        address: on the bridge.
        device: that has it.
        namespace: "" for the machine itself.
    """

    address: str
    device: str
    namespace: str = ""

    @property
    def place(self) -> Place:
        """Return where a server of the target manager runs on it."""
        enter = (needs.tool("nsenter"), f"--net=/run/netns/{self.namespace}") if self.namespace else ()
        return Place(self.address, enter)

    def ip(self, *words: str) -> None:
        """Run `ip` in its namespace."""
        _ip(*(["-n", self.namespace] if self.namespace else []), *words)

    def lose(self, other: Node) -> None:
        """Send to another one no more."""
        self.ip("neigh", "replace", other.address, "lladdr", _NO_INTERFACE, "dev", self.device, "nud", "permanent")

    def find(self, other: Node) -> None:
        """Send to another one again."""
        self.ip("neigh", "del", other.address, "dev", self.device)


@contextmanager
def network(hosts: int) -> Iterator[tuple[Node, list[Node]]]:
    """Make hosts for the block; give the machine and them.

    Raises:
        MissingError: no root, or no iproute2.
    """
    needs.tool("ip")
    if os.geteuid() != 0:
        raise MissingError("a network namespace needs root: run as root")
    number = os.getpid()
    # 100.64.0.0/10 is shared address space, which the internet does not route (RFC 6598).
    net = f"100.{64 + number % 64}.{number // 64 % 256}."
    machine = Node(f"{net}1", f"kvb{number}")
    with ExitStack() as stack:
        _ip("link", "add", machine.device, "type", "bridge")
        stack.callback(_ip, "link", "del", machine.device)
        machine.ip("addr", "add", f"{machine.address}/24", "dev", machine.device)
        machine.ip("link", "set", machine.device, "up")
        yield machine, [_host(stack, machine, f"{net}{2 + each}", f"kvh{number}n{each}") for each in range(hosts)]


def _host(stack: ExitStack, machine: Node, address: str, name: str) -> Node:
    host = Node(address, _INSIDE, name)
    _ip("netns", "add", name)
    stack.callback(_ip, "netns", "del", name)
    machine.ip("link", "add", name, "type", "veth", "peer", "name", _INSIDE, "netns", name)
    # By hand: with the namespace it goes only when nothing runs in there any more.
    stack.callback(_ip, "link", "del", name)
    machine.ip("link", "set", name, "master", machine.device, "up")
    host.ip("addr", "add", f"{address}/24", "dev", _INSIDE)
    for each in ("lo", _INSIDE):
        host.ip("link", "set", each, "up")
    return host


@contextmanager
def parted(one: Node, others: list[Node]) -> Iterator[None]:
    """Part one from others for the block; it may be among them."""
    pairs = [(one, each) for each in others if each != one]
    for here, there in pairs:
        here.lose(there)
        there.lose(here)
    try:
        yield
    finally:
        for here, there in pairs:
            here.find(there)
            there.find(here)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
