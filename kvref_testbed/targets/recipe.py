"""What a target is made of: a name, the profile to judge it with, and how it boots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.run import Run
    from kvref_testbed.targets.target import Endpoint


class Recipe(Protocol):
    """How one target boots. Implementations: `plugin.py`, `memcached.py`, `twemproxy.py`, `yrmcds.py`, `nodecached.py`,
    `kvref_serve.py`, `sql_only.py`.
    """

    @property
    def name(self) -> str:
        """Return the name users type."""

    @property
    def profile(self) -> str | None:
        """Return the name of the profile to judge it with; None for a server that serves only SQL."""

    @property
    def summary(self) -> str:
        """Say what it is, in a few words."""

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start the servers in the run, the main one last, and wait until memcached commands, or SQL, are answered.

        options: further options of the main server; `{mc_port}` in one is replaced by the memcached port, if any.
        Raises TargetError; the caller stops what was started.
        """
