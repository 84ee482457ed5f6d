"""Native memcached, as the machine's package installs it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvref_testbed.targets.needs import tool
from kvref_testbed.targets.plain import started
from kvref_testbed.targets.ports import LOOPBACK, ask_version, free_port, reach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.run import Run
    from kvref_testbed.targets.target import Endpoint

_USERS = ("-Y", "--auth-file", "-S", "--enable-sasl")


@dataclass(frozen=True, slots=True)
class Memcached:
    """The `memcached` program in PATH; see `recipe.Recipe` for the fields."""

    name: str = "memcached"
    profile: str = "memcached"
    summary: str = "native memcached, from the package of that name"

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:  # noqa: ARG002 -- it is quick
        """Start memcached and wait for its port.

        options: of memcached, e.g. `-m128` or `--max-item-size=2m`.
        Raises MissingError without the program, TargetError when it ends, e.g. because of an option.
        """
        port = free_port()
        # memcached refuses to run as root without this option.
        user = ["-u", "root"] if os.geteuid() == 0 else []
        mine = [each.replace("{mc_port}", str(port)) for each in options]
        words = [tool("memcached"), *user, "-l", LOOPBACK, "-p", str(port), "-U", "0", *mine]
        asks_users = any(each.startswith(_USERS) for each in mine)
        ask = reach if asks_users else ask_version
        return started(run, "memcached", words, f"{LOOPBACK}:{port}", ask)
