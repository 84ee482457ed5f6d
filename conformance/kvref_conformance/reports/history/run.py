"""One report that is kept, as trends and comparisons need it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kvref_conformance.reports.grid import Share


@dataclass(frozen=True, slots=True)
class Run:
    """One report that is kept, without its conversations.

    Args:
        endpoint: name of the endpoint.
        path: of the report.
        header: of the report.
        exit_code: of the run.
        complaints: number of problems of the endpoint other than its cases.
        levels: of conformance, as the report's footer has them, by name.
        verdicts: by case.
        shares: requirements that are kept, by PARTS; a part without requirements is left out.
    """

    endpoint: str
    path: Path
    header: Mapping[str, Any]
    exit_code: int
    complaints: int
    levels: Mapping[str, Mapping[str, Any]]
    verdicts: Mapping[str, str]
    shares: Mapping[str, Share]

    @property
    def started(self) -> str:
        """Return when it started, in UTC."""
        return str(self.header["started"])

    @property
    def profile(self) -> str:
        """Return the name of the profile that it judged by."""
        return str(self.header["profile"])

    def about(self) -> str:
        """Return date, versions and profile in a line."""
        over = f" over {self.header['database']}" if self.header["database"] else ""
        return (
            f"{self.started[:10]} {self.started[11:16]}, VERSION {self.header['version']}{over}"
            f" as {self.profile}, kvref {self.header['suite']}"
        )
