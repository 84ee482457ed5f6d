"""What a server serves, in lines for its log: at the start, and after each reload."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from kvref.engine.mapping import Column, Directory, Mapping
from kvref.profiles import Profile
from kvref.server.settings import SETTINGS

_log = logging.getLogger("kvref.served")

Line = tuple[str, dict[str, object]]
MAX_MAPPINGS: Final = 1000  # mappings that are named one by one


@dataclass
class Served:
    """What does not change while a server runs.

    Args:
        profile: whose answers are given.
        store: its DSN as it may be shown.
        workers: processes that serve.
        more: further lines, such as listeners and limits; others add to them.
    """

    profile: Profile
    store: str
    workers: int = 1
    more: list[Line] = field(default_factory=list)

    def tell(self, directory: Directory, problems: Iterable[str], settings: dict[str, int]) -> None:
        """Log what is served, and what of the configuration is not.

        Args:
            directory: in force.
            problems: one sentence for each row that cannot be used.
            settings: in force.
        """
        for problem in problems:
            _log.warning("%s", problem)
        for text, fields in self._lines(directory, settings):
            _log.info("%s", text, extra=fields)

    def _lines(self, directory: Directory, settings: dict[str, int]) -> Iterator[Line]:
        default, delimiter = directory.default, directory.delimiter.decode(errors="replace")
        yield (
            f"profile {self.profile.name}, default mapping {default.name} ({default.label.decode()}),"
            f" delimiter {delimiter!r}",
            {"profile": self.profile.name, "mapping": default.name, "delimiter": delimiter},
        )
        processes = f"{self.workers} workers" if self.workers > 1 else "one process"
        yield f"store {self.store}, {processes}", {"store": self.store, "workers": self.workers}
        usable = directory.usable or (default,)
        yield from (_mapping(each) for each in usable[:MAX_MAPPINGS])
        if len(usable) > MAX_MAPPINGS:
            yield f"and {len(usable) - MAX_MAPPINGS} mappings more", {"count": len(usable)}
        other = {name: value for name, value in settings.items() if value != SETTINGS[name].default}
        if other:
            yield "settings " + ", ".join(f"{name}={value}" for name, value in other.items()), {"settings": other}
        yield from self.more


def tell_reload(error: Exception | None) -> None:
    """Log that the configuration was reloaded, or why the previous one stays active."""
    if error is None:
        _log.info("configuration reloaded")
    else:
        _log.error("configuration not reloaded, the previous one stays active: %s", error, extra={"reason": str(error)})


def _mapping(mapping: Mapping) -> Line:
    places: list[tuple[str, Column | None]] = [("key", mapping.key), *(("value", each) for each in mapping.values)]
    places += [("flags", mapping.flags), ("cas", mapping.cas), ("expiry", mapping.expiry)]
    columns = " ".join(f"{what}={column.name}" for what, column in places if column is not None)
    table = f"{mapping.schema}.{mapping.table}"
    return f"mapping {mapping.name}: {table} {columns}", {"mapping": mapping.name, "table": table, "columns": columns}
