"""The server's log on stderr: a line of text or a JSON object for each record; what clients cause is bounded.

Without a library: the formats are a few lines, and what is escaped and how much is logged are rules of kvref's own.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from kvref.errors import printable
from kvref.log_throttle import LogThrottle

FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warning", "error")
# Warnings of one kind in one period; what is served, and reports of it, are the operator's own doing.
MAX_WARNINGS: Final = 20
PERIOD: Final = 60.0  # seconds
UNLIMITED: Final = "kvref.served"
_STANDARD: Final = frozenset(vars(logging.LogRecord("", 0, "", 0, "", None, None))) | {"message", "asctime", "taskName"}


def set_up(form: str, level: str) -> None:
    """Log to stderr from now on; lines of text have a time, unless the journal of systemd adds one."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JSON() if form == "json" else _Text())
    if level != "debug":
        handler.addFilter(WarningLimit())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)


class WarningLimit(logging.Filter):
    """Pass MAX_WARNINGS of one kind in each PERIOD; the first one after that has the number of suppressed ones."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: defaultdict[tuple[str, str], LogThrottle] = defaultdict(lambda: LogThrottle(PERIOD, MAX_WARNINGS))

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or record.name == UNLIMITED:
            return True
        suppressed = self._kinds[record.name, str(record.msg)].suppressed()
        if suppressed:
            record.left_out = suppressed
        return suppressed is not None


class _Text(logging.Formatter):
    def __init__(self) -> None:
        super().__init__()
        self._journal = _is_journal(sys.stderr)

    def format(self, record: logging.LogRecord) -> str:
        moment = "" if self._journal else f"{_moment(record)} "
        lines = [f"{moment}kvref: {printable(record.getMessage())}"]
        if (left_out := getattr(record, "left_out", 0)) > 0:
            lines[0] += f" ({left_out} more of these were left out)"
        # Indented, so that no text in it looks like a line of the log.
        lines += [f"  {printable(line)}" for line in _trace(self, record).splitlines()]
        return "\n".join(lines)


class _JSON(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if trace := _trace(self, record):
            line["trace"] = trace
        return json.dumps(line, default=str)


def _moment(record: logging.LogRecord) -> str:
    """Return the time of a record in UTC, to the millisecond."""
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_journal(stream: TextIO) -> bool:
    """Return whether a stream is the one that systemd has connected to its journal, see sd-daemon(3)."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):  # not a file
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = [formatter.formatException(record.exc_info)] if record.exc_info else []
    if record.stack_info:
        parts.append(record.stack_info)
    return "\n".join(parts)
