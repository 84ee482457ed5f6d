"""Which server of a cluster a process uses: one for all its connections, while that one serves.

So what a command has written is seen by the next one, whichever connections they use, and commands of one process do
not conflict in the cluster. The first server of the DSN that serves is taken, and stays until it serves no more: going
back would let a read overtake a write that was acknowledged elsewhere. It is looked at every second, since a statement
may wait for a lock far longer than a server may say nothing. Where the DSN names one server nothing of this happens.
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
from kvref.storage.mysql.errors import DENIED, NOT_READY, ends_connection
from kvref.storage.mysql.login import Login, cause, fetch_all, hangs

_log = logging.getLogger("kvref.storage")

LOOK_EVERY: Final = 1.0  # seconds
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

    SERVES = 0
    GIVES = 1  # a transfer of its state to another: it may be slow
    READS = 2  # read_only: a replica
    FOLLOWS = 3  # a secondary of a replication group, which may lag behind: used only until the primary is found


class Look(NamedTuple):
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
class _Use:
    """The server in use: its number, and what was opened to it since."""

    number: int
    open: WeakSet[Connection[Cursor]] = field(default_factory=WeakSet)
    served: float = -_SWITCH_SECONDS  # when it was last seen to take writes, by the monotonic clock


class Nodes:
    """The servers of one DSN; any thread may use it."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._each = login.each()
        self._use: _Use | None = None
        self._choosing = threading.Lock()
        self._closed = threading.Event()
        self._watching: threading.Thread | None = None
        self._open: WeakSet[Connection[Cursor]] = WeakSet()  # to the only server, since it last refused a write
        self._replaced = -math.inf  # when they were last to be replaced, by the monotonic clock

    def connect(self, lock_wait: float) -> Connection[Cursor]:
        """Open a connection to the server in use, or to another where that one does not serve.

        Raises StoreError: none of them is available, or the one in use refuses; the text has each one's cause.
        """
        if len(self._each) == 1:
            connection = self._each[0].connect(lock_wait)
            self._open.add(connection)
            return connection
        use = self._use or self._another(None, "")
        try:
            return self._enter(use, lock_wait)
        except DownError as error:
            return self._enter(self._another(use, str(error)), lock_wait)

    def left(self, connection: Connection[Cursor]) -> bool:
        """Return whether a connection leads to a server that is not the one in use any more, or may do so.

        The address of the only server can lead to another one after a failover, through a router or by DNS.
        """
        return connection not in (self._open if self._use is None else self._use.open)

    def writes_elsewhere(self, connection: Connection[Cursor]) -> bool:
        """Return whether a server that refuses writes has a successor, which is in use from then on.

        If it has accepted writes lately, a successor is being chosen, and this waits for it.
        """
        use = self._use
        if use is None:
            self._replace(connection)
            return False
        if self.left(connection):
            return True
        deadline = use.served + _SWITCH_SECONDS
        while True:
            self._judge(use, State.READS)
            if self._use is not use or time.monotonic() > deadline:
                return self._use is not use
            time.sleep(_PAUSE)

    def _replace(self, refused: Connection[Cursor]) -> None:
        """Let the connections to the only server end: reads, too, have to follow its address to another server.

        At most once in LOOK_EVERY, otherwise the refused one alone: writes to a replica must not slow its reads down.
        """
        now = time.monotonic()
        if now - self._replaced > LOOK_EVERY:
            self._open, self._replaced = WeakSet(), now
        else:
            self._open.discard(refused)

    def close(self) -> None:
        """Look after the servers no more; afterwards no connection of it is open."""
        self._closed.set()
        if self._watching is not None:
            self._watching.join()

    def _enter(self, use: _Use, lock_wait: float) -> Connection[Cursor]:
        login = self._each[use.number]
        connection = _opened(login, lock_wait)
        try:
            self._catch_up(connection)
        except (DownError, OSError, pymysql.err.MySQLError) as error:
            connection.close()
            if isinstance(error, pymysql.err.MySQLError) and not _is_down(error):
                raise StoreError(f"store {login.text}: {_words(error)}") from error
            raise DownError(f"store {login.text}: {_words(error)}") from error
        use.open.add(connection)
        return connection

    def _catch_up(self, connection: Connection[Cursor]) -> None:
        """Wait until the node has what the others have acknowledged. Raises as `look_at`."""
        deadline = time.monotonic() + self._login.timeout
        while True:
            if look_at(connection).state is State.FOLLOWS:
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

    def _another(self, left: _Use | None, why: str) -> _Use:
        """Choose another server, unless another thread has already replaced the one that failed."""
        with self._choosing:
            if self._use is not left and self._use is not None:
                return self._use
            use = self._use = _Use(self._best(left)[0])
            if left is not None:
                _log.warning("%s: %s is used now", why, self._each[use.number].text)
            if self._watching is None:
                self._watching = threading.Thread(target=self._watch, name="kvref-nodes", daemon=True)
                self._watching.start()
            return use

    def _best(self, left: _Use | None) -> tuple[int, State]:
        """Return the first of the best servers and its state; the one that is left comes last. StoreError: none serves.

        A member that its group has expelled while it hung calls itself the primary until it notices, so the others are
        checked too.
        """
        numbers = sorted(range(len(self._each)), key=lambda number: left is not None and number == left.number)
        looks: dict[int, Look] = {}
        causes = []
        for number in numbers:
            try:
                with closing(_opened(self._each[number], 1)) as connection:
                    looks[number] = look_at(connection)
            except (StoreError, OSError, pymysql.err.MySQLError) as error:
                causes.append(_words(error))
                continue
            if any(_is_certain(look, looks.values(), len(numbers)) for look in looks.values()):
                break
        found: dict[int, State] = {}
        for number, look in looks.items():
            if look.state is State.FOLLOWS:
                causes.append(f"{self._each[number].text}: {_SECONDARY}")
            elif _is_outvoted(look, looks.values()):
                causes.append(f"{self._each[number].text}: {_OUTVOTED}")
            else:
                found[number] = look.state
        if not found:
            raise StoreError(f"none of the {len(numbers)} servers is available: {'; '.join(causes)}")
        number = min(found, key=lambda number: (found[number], number))
        return number, found[number]

    def _watch(self) -> None:
        watched: _Use | None = None
        with ExitStack() as stack:
            while not self._closed.wait(LOOK_EVERY):
                use = self._use
                assert use is not None, "it is watched from then on"
                try:
                    if watched is not use:
                        stack.close()
                        connection = stack.enter_context(closing(_opened(self._each[use.number], 1)))
                        connection._read_timeout = self._login.timeout  # type: ignore[attr-defined]
                        watched = use
                    self._judge(use, look_at(connection).state)
                except (StoreError, OSError, pymysql.err.MySQLError) as error:
                    stack.close()
                    watched = None
                    if _is_down(error):
                        self._leave(use, f"store {self._each[use.number].text}: {_words(error)}")

    def _judge(self, use: _Use, state: State) -> None:
        """Leave a server that only reads, or a secondary, for one that serves."""
        if state < State.READS:
            use.served = time.monotonic()
            return
        with suppress(StoreError):
            if self._best(use)[1] < state:
                why = _SECONDARY if state is State.FOLLOWS else "it is read-only"
                self._another(use, f"store {self._each[use.number].text}: {why}")

    def _leave(self, use: _Use, why: str) -> None:
        """Use another server, and wake the threads that wait for the previous one."""
        with suppress(StoreError):
            self._another(use, why)
        if self._use is not use:
            for each in list(use.open):
                _cut(each)


class Secondaries(Nodes):
    """The secondaries of the replication group that one DSN names; none of them counts as in use."""

    def connect(self, lock_wait: float) -> Connection[Cursor]:
        """Open a connection to one of the secondaries, chosen at random.

        Raises NoSecondaryError: none can be read; the text has each server's cause.
        """
        causes = []
        for login in random.sample(self._each, len(self._each)):
            try:
                with ExitStack() as stack:
                    connection = stack.enter_context(closing(_opened(login, lock_wait)))
                    connection._read_timeout = SECONDARY_SECONDS  # type: ignore[attr-defined]
                    if look_at(connection).state is State.FOLLOWS:
                        _log.info("gets are read from %s", login.text)
                        stack.pop_all()
                        return connection
                causes.append(f"{login.text}: it is not a secondary")
            except (StoreError, OSError, pymysql.err.MySQLError) as error:
                causes.append(_words(error))
        raise NoSecondaryError(f"none of {len(causes)} servers is a secondary that can be read: {'; '.join(causes)}")


def look_at(connection: Connection[Cursor]) -> Look:
    """Return whether a server accepts writes, only reads, or neither; raises MySQLError or OSError without a reply.

    Raises DownError: the node is not connected to its cluster, or to a majority of its replication group.
    """
    said = {**_fetch_dict(connection, _VARIABLES), **_fetch_dict(connection, _STATUS)}
    reads = State.SERVES if said.get("read_only") in ("OFF", "0") else State.READS
    if said.get("group_replication_group_name"):
        state, primary = _look_at_member(connection)
        return Look(max(state, reads) if state is State.SERVES else state, primary)
    if said.get("wsrep_on") == "ON":
        if said.get("wsrep_ready") != "ON":
            raise DownError(f"the node is {said.get('wsrep_local_state_comment')} and not ready")
        if said.get("wsrep_local_state_comment") != "Synced":
            return Look(State.GIVES)
    return Look(reads)


def _is_outvoted(look: Look, looks: Iterable[Look]) -> bool:
    """Return whether a member sees a primary that half of those which were looked at, or more, do not see."""
    seen = [each.primary for each in looks if each.primary is not None]
    return look.primary is not None and 2 * seen.count(look.primary) <= len(seen)


def _is_certain(look: Look, looks: Iterable[Look], servers: int) -> bool:
    """Return whether a server serves, and no further look can outvote it."""
    votes = sum(each.primary == look.primary for each in looks)
    return look.state is State.SERVES and (look.primary is None or 2 * votes > servers)


def _look_at_member(connection: Connection[Cursor]) -> Look:
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
    return Look(State.SERVES if role == "PRIMARY" else State.FOLLOWS, str(primary))


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


def _words(error: Exception) -> str:
    if not isinstance(error, pymysql.err.MySQLError):
        return str(error).removeprefix("store ")
    return f"{cause(error)}: {_GRANT}" if error.args[0] in DENIED else cause(error)


def _fetch_dict(connection: Connection[Cursor], sql: str) -> dict[str, Any]:
    return {str(row[0]): row[-1] for row in fetch_all(connection, sql)}


def _cut(connection: Connection[Cursor]) -> None:
    """End a connection that a thread waits for, which closing it does not."""
    opened: socket.socket | None = getattr(connection, "_sock", None)
    if opened is not None:
        with suppress(OSError):
            opened.shutdown(socket.SHUT_RDWR)
