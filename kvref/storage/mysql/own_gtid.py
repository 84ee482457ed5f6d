"""The GTID of a connection's own commit, which MySQL reports in the OK packet of COMMIT.

Format: dev.mysql.com/doc/dev/mysql-server, "OK_Packet", with CLIENT_SESSION_TRACK; the tracker is SESSION_TRACK_GTIDS.
"""

from __future__ import annotations

from typing import Any, Final

from pymysql.connections import Connection
from pymysql.constants import CLIENT, COMMAND

from kvref.storage.mysql.result_set import SHORT, WIDTHS

TRACKED: Final = ", session_track_gtids = OWN_GTID"  # of SET SESSION
_STATE_CHANGED: Final = 0x4000  # SERVER_SESSION_STATE_CHANGED
_GTIDS: Final = 3  # SESSION_TRACK_GTIDS
_AS_TEXT: Final = 0  # the only encoding of a GTID


class TrackingConnection(Connection):
    """A connection of PyMySQL that keeps the GTID of its last COMMIT.

    Attributes:
        last_gtid: as text; "": the last COMMIT has reported none, because it has changed no row or has failed.
    """

    def __init__(self, *, client_flag: int = 0, **options: Any) -> None:
        self.last_gtid = ""
        super().__init__(client_flag=client_flag | CLIENT.SESSION_TRACK, **options)

    def commit(self) -> None:
        """Commit, as PyMySQL does."""
        raw: Any = self
        self.last_gtid = ""
        raw._execute_command(COMMAND.COM_QUERY, "COMMIT")
        ok = raw._read_ok_packet()
        if ok.server_status & _STATE_CHANGED:
            self.last_gtid = reported(ok.message)


def reported(message: bytes) -> str:
    """Return the GTID that the end of an OK packet reports, "" if it reports none.

    Args:
        message: from the text of the packet on; the session's state has changed.
    """
    _, at = _text(message, 0)
    states, _ = _text(message, at)
    at = 0
    while at < len(states):
        kind = states[at]
        state, at = _text(states, at + 1)
        if kind == _GTIDS and state[0] == _AS_TEXT:
            return _text(state, 1)[0].decode()
    return ""


def _text(data: bytes, at: int) -> tuple[bytes, int]:
    """Return a string with its length in front of it, and where the next one begins."""
    size = data[at]
    at += 1
    if size >= SHORT:
        width = WIDTHS[size]
        size = int.from_bytes(data[at : at + width], "little")
        at += width
    return data[at : at + size], at + size
