"""Choose the server of a cluster that a process uses: one for all its connections, as long as it is available.

Thus what a command has written is visible to the next one, whichever connections they use, and commands of one process
do not conflict in the cluster. The first available server of the DSN is used until it fails: going back would let a
read overtake a write acknowledged elsewhere. It is checked every second, since a statement may wait for a lock far
longer than a server may be silent. If the DSN names one server, nothing of this happens.
"""

from __future__ import annotations

import logging
import math
import random
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, NamedTuple
from weakref import WeakSet

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CR, ER
from pymysql.cursors import Cursor

from kvref.errors import KvrefError, StoreError
from kvref.storage.mysql import vitess
from kvref.storage.mysql.errors import DENIED, NOT_READY, ends_connection
from kvref.storage.mysql.login import Login, cause, fetch_all, hangs

_log = logging.getLogger("kvref.storage")

CHECK_INTERVAL: Final = 1.0  # seconds
_PAUSE: Final = 0.05  # seconds
_STATUS: Final = "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_local_state_comment')"
# SHOW, which a node that is not ready answers too.
_VARIABLES: Final = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on', 'read_only', 'group_replication_group_name')"
)
# A member of a replication group that left it, or never joined, takes writes that the others do not get. One without a
# majority commits nothing until it gives up.
_MEMBERS: Final = (
    "SELECT MEMBER_ID = @@server_uuid, MEMBER_STATE, MEMBER_ROLE, MEMBER_ID"
    " FROM performance_schema.replication_group_members"
)
_GRANT: Final = "GRANT SELECT ON performance_schema.replication_group_members TO its account"
SECONDARY_SECONDS: Final = 1.0  # a secondary that does not reply within it is left
_SECONDARY: Final = "it is a secondary of its replication group"
_OUTVOTED: Final = "it calls itself the primary of its replication group, but half of the members see another one"
# A new primary is chosen within this time after the previous one has become read-only.
_SWITCH_SECONDS: Final = 2.0
# A node has what the others have acknowledged in its queue, and need not have carried it out.
_CATCH_UP: Final = "SET STATEMENT wsrep_sync_wait = 1 FOR SELECT 1"
# The last two: a server in offline mode, as a member that its group has expelled.
_UNREACHED: Final = (CR.CR_CONNECTION_ERROR, CR.CR_CONN_HOST_ERROR, CR.CR_UNKNOWN_HOST, 3032, 6400)


class State(IntEnum):
    """What a server is good for, best first."""

    WRITABLE = 0
    DONOR = 1  # a transfer of its state to another: it may be slow
    READ_ONLY = 2  # read_only: a replica
    SECONDARY = 3  # a secondary of a replication group, which may lag behind: used only until the primary is found


class NodeStatus(NamedTuple):
    """What a server says of itself.

    `primary`: the one that a member of a replication group sees, by its UUID; None: it is in no group.
    """

    state: State
    primary: str | None = None


class DownError(StoreError):
    """A server does not serve: another is to be used."""


class NoSecondaryError(KvrefError):
    """No secondary can be read: the primary has the answer, and no client receives this text."""


@dataclass(eq=False, slots=True)
class _Current:
    """The server in use: its number, and what was opened to it since."""

    number: int
    open: WeakSet[Connection[Cursor]] = field(default_factory=WeakSet)
    served: float = -_SWITCH_SECONDS  # when it was last seen to take writes, by the monotonic clock


class Nodes:
    """The servers of one DSN; any thread may use it."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._logins = login.each()
        self._use: _Current | None = None
        self._choosing = threading.Lock()
        self._closed = threading.Event()
        self._monitor_thread: threading.Thread | None = None
        self._open: WeakSet[Connection[Cursor]] = WeakSet()  # to the only server, since it last refused a write
        self._replaced = -math.inf  # when they were last to be replaced, by the monotonic clock

    def connect(self, lock_wait: float) -> Connection[Cursor]:
        """Open a connection to the server in use, or to another where that one does not serve.

        Raises StoreError: none of them is available, or the one in use refuses; the text has each one's cause.
        """
        if len(self._logins) == 1:
            connection = self._logins[0].connect(lock_wait)
            self._open.add(connection)
            return connection
        use = self._use or self._switch(None, "")
        try:
            return self._enter(use, lock_wait)
        except DownError as error:
            return self._enter(self._switch(use, str(error)), lock_wait)

    def is_stale(self, connection: Connection[Cursor]) -> bool:
        """Return whether a connection leads to a server that is not the one in use any more, or may do so.

        The address of the only server can lead to another one after a failover, through a router or by DNS.
        """
        return connection not in (self._open if self._use is None else self._use.open)

    def has_successor(self, connection: Connection[Cursor]) -> bool:
        """Return whether a server that refuses writes has a successor, which is in use from then on.

        If it has accepted writes lately, a successor is being chosen, and this waits for it.
        """
        use = self._use
        if use is None:
            self._replace(connection)
            return False
        if self.is_stale(connection):
            return True
        deadline = use.served + _SWITCH_SECONDS
        while True:
            self._leave_if_worse(use, State.READ_ONLY)
            if self._use is not use or time.monotonic() > deadline:
                return self._use is not use
            time.sleep(_PAUSE)

    def _replace(self, refused: Connection[Cursor]) -> None:
        """Let the connections to the only server end: reads, too, have to follow its address to another server.

        At most once in CHECK_INTERVAL, otherwise only the refused one: writes to a replica must not slow its reads.
        """
        now = time.monotonic()
        if now - self._replaced > CHECK_INTERVAL:
            self._open, self._replaced = WeakSet(), now
        else:
            self._open.discard(refused)

    def close(self) -> None:
        """Stop monitoring the servers; afterwards no connection of it is open."""
        self._closed.set()
        if self._monitor_thread is not None:
            self._monitor_thread.join()

    def _enter(self, use: _Current, lock_wait: float) -> Connection[Cursor]:
        login = self._logins[use.number]
        connection = _opened(login, lock_wait)
        try:
            self._catch_up(connection)
        except (DownError, OSError, pymysql.err.MySQLError) as error:
            connection.close()
            if isinstance(error, pymysql.err.MySQLError) and not _is_down(error):
                raise StoreError(f"store {login.text}: {_message(error)}") from error
            raise DownError(f"store {login.text}: {_message(error)}") from error
        use.open.add(connection)
        return connection

    def _catch_up(self, connection: Connection[Cursor]) -> None:
        """Wait until the node has what the others have acknowledged. Raises as `read_status`."""
        deadline = time.monotonic() + self._login.timeout
        while True:
            if read_status(connection).state is State.SECONDARY:
                raise DownError(_SECONDARY)
            if "MariaDB" not in str(connection.server_version):  # type: ignore[attr-defined]
                return
            try:
                _fetch_dict(connection, _CATCH_UP)
            except pymysql.err.OperationalError as error:
                # While the cluster agrees on its members, the state of the node is unknown.
                if error.args[0] != ER.LOCK_WAIT_TIMEOUT:
                    raise
                if time.monotonic() > deadline:
                    raise DownError(f"it does not catch up with its cluster: {cause(error)}") from error
                time.sleep(_PAUSE)
            else:
                return

    def _switch(self, previous: _Current | None, why: str) -> _Current:
        """Choose another server, unless another thread has already replaced the one that failed."""
        with self._choosing:
            if self._use is not previous and self._use is not None:
                return self._use
            use = self._use = _Current(self._best(previous)[0])
            if previous is not None:
                _log.warning("%s: %s is used now", why, self._logins[use.number].text)
            if self._monitor_thread is None:
                self._monitor_thread = threading.Thread(target=self._monitor, name="kvref-nodes", daemon=True)
                self._monitor_thread.start()
            return use

    def _best(self, previous: _Current | None) -> tuple[int, State]:
        """Return the first of the best servers and its state; `previous` comes last. StoreError: none serves.

        A member that its group has expelled while it hung calls itself the primary until it notices, so the others are
        checked too.
        """
        numbers = sorted(
            range(len(self._logins)), key=lambda number: previous is not None and number == previous.number
        )
        statuses: dict[int, NodeStatus] = {}
        causes = []
        transient: Exception | None = None
        for number in numbers:
            try:
                with closing(_opened(self._logins[number], 1)) as connection:
                    statuses[number] = read_status(connection)
            except (StoreError, OSError, pymysql.err.MySQLError) as error:
                causes.append(_message(error))
                transient = error if vitess.is_transient(error) else transient
                continue
            if any(_has_majority(status, statuses.values(), len(numbers)) for status in statuses.values()):
                break
        found: dict[int, State] = {}
        for number, status in statuses.items():
            if status.state is State.SECONDARY:
                causes.append(f"{self._logins[number].text}: {_SECONDARY}")
            elif _is_outvoted(status, statuses.values()):
                causes.append(f"{self._logins[number].text}: {_OUTVOTED}")
            else:
                found[number] = status.state
        if not found:
            raise StoreError(f"none of the {len(numbers)} servers is available: {'; '.join(causes)}") from transient
        number = min(found, key=lambda number: (found[number], number))
        return number, found[number]

    def _monitor(self) -> None:
        watched: _Current | None = None
        with ExitStack() as stack:
            while not self._closed.wait(CHECK_INTERVAL):
                use = self._use
                assert use is not None, "it is watched from then on"
                try:
                    if watched is not use:
                        stack.close()
                        connection = stack.enter_context(closing(_opened(self._logins[use.number], 1)))
                        connection._read_timeout = self._login.timeout  # type: ignore[attr-defined]
                        watched = use
                    self._leave_if_worse(use, read_status(connection).state)
                except (StoreError, OSError, pymysql.err.MySQLError) as error:
                    stack.close()
                    watched = None
                    if _is_down(error):
                        self._fail_over(use, f"store {self._logins[use.number].text}: {_message(error)}")

    def _leave_if_worse(self, use: _Current, state: State) -> None:
        """Leave a server that only reads, or a secondary, for one that serves."""
        if state < State.READ_ONLY:
            use.served = time.monotonic()
            return
        with suppress(StoreError):
            if self._best(use)[1] < state:
                why = _SECONDARY if state is State.SECONDARY else "it is read-only"
                self._switch(use, f"store {self._logins[use.number].text}: {why}")

    def _fail_over(self, use: _Current, why: str) -> None:
        """Use another server, and wake the threads that wait for the previous one."""
        with suppress(StoreError):
            self._switch(use, why)
        if self._use is not use:
            for each in list(use.open):
                _shut_down(each)


class Secondaries(Nodes):
    """The secondaries of the replication group that one DSN names; none of them counts as in use."""

    def connect(self, lock_wait: float) -> Connection[Cursor]:
        """Open a connection to one of the secondaries, chosen at random.

        Raises NoSecondaryError: none can be read; the text has each server's cause.
        """
        causes = []
        for login in random.sample(self._logins, len(self._logins)):
            try:
                with ExitStack() as stack:
                    connection = stack.enter_context(closing(_opened(login, lock_wait)))
                    connection._read_timeout = SECONDARY_SECONDS  # type: ignore[attr-defined]
                    if read_status(connection).state is State.SECONDARY:
                        _log.info("gets are read from %s", login.text)
                        stack.pop_all()
                        return connection
                causes.append(f"{login.text}: it is not a secondary")
            except (StoreError, OSError, pymysql.err.MySQLError) as error:
                causes.append(_message(error))
        raise NoSecondaryError(f"none of {len(causes)} servers is a secondary that can be read: {'; '.join(causes)}")


def read_status(connection: Connection[Cursor]) -> NodeStatus:
    """Return whether a server accepts writes, only reads, or neither; raises MySQLError or OSError without a reply.

    Raises DownError: the node is not connected to its cluster, or to a majority of its replication group.
    """
    variables = {**_fetch_dict(connection, _VARIABLES), **_fetch_dict(connection, _STATUS)}
    reads = State.WRITABLE if variables.get("read_only") in ("OFF", "0") else State.READ_ONLY
    if variables.get("group_replication_group_name"):
        state, primary = _read_member_status(connection)
        return NodeStatus(max(state, reads) if state is State.WRITABLE else state, primary)
    if variables.get("wsrep_on") == "ON":
        if variables.get("wsrep_ready") != "ON":
            raise DownError(f"the node is {variables.get('wsrep_local_state_comment')} and not ready")
        if variables.get("wsrep_local_state_comment") != "Synced":
            return NodeStatus(State.DONOR)
    return NodeStatus(reads)


def _is_outvoted(status: NodeStatus, statuses: Iterable[NodeStatus]) -> bool:
    """Return whether a member sees a primary that at least half of the members that were queried do not see."""
    seen = [each.primary for each in statuses if each.primary is not None]
    return status.primary is not None and 2 * seen.count(status.primary) <= len(seen)


def _has_majority(status: NodeStatus, statuses: Iterable[NodeStatus], servers: int) -> bool:
    """Return whether a server serves, and no further member can outvote it."""
    votes = sum(each.primary == status.primary for each in statuses)
    return status.state is State.WRITABLE and (status.primary is None or 2 * votes > servers)


def _read_member_status(connection: Connection[Cursor]) -> NodeStatus:
    """Return whether a member of a replication group is its primary, and which one that is.

    Raises DownError: it is not online, or does not reach a majority.
    """
    members = fetch_all(connection, _MEMBERS)
    state, role = next(((state, role) for own, state, role, _ in members if own), ("OFFLINE", ""))
    if state != "ONLINE":
        raise DownError(f"the member is {state} in its replication group")
    reached = sum(state != "UNREACHABLE" for _, state, _, _ in members)
    if 2 * reached <= len(members):
        raise DownError(f"the member reaches {reached} of {len(members)} members of its replication group")
    primary = next((member for _, _, role, member in members if role == "PRIMARY"), "")
    return NodeStatus(State.WRITABLE if role == "PRIMARY" else State.SECONDARY, str(primary))


def _opened(login: Login, lock_wait: float) -> Connection[Cursor]:
    try:
        return login.connect(lock_wait)
    except StoreError as error:
        of_server = error.__cause__
        if of_server is not None and _is_down(of_server):
            raise DownError(str(error)) from of_server
        raise


def _is_down(error: BaseException) -> bool:
    """Return whether an error is that of a server that does not serve, and not of one that refuses this account."""
    if isinstance(error, DownError | OSError) or hangs(error):
        return True
    if not isinstance(error, pymysql.err.MySQLError):
        return False
    return ends_connection(error) or error.args[:1] == (NOT_READY,) or error.args[0] in _UNREACHED


def _message(error: Exception) -> str:
    if not isinstance(error, pymysql.err.MySQLError):
        return str(error).removeprefix("store ")
    return f"{cause(error)}: {_GRANT}" if error.args[0] in DENIED else cause(error)


def _fetch_dict(connection: Connection[Cursor], sql: str) -> dict[str, Any]:
    return {str(row[0]): row[-1] for row in fetch_all(connection, sql)}


def _shut_down(connection: Connection[Cursor]) -> None:
    """End a connection that a thread waits for, which closing it does not."""
    opened: socket.socket | None = getattr(connection, "_sock", None)
    if opened is not None:
        with suppress(OSError):
            opened.shutdown(socket.SHUT_RDWR)
