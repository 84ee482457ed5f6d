"""What is to be known of a server before its HandlerSocket is used: whether it has one, and what its threads see."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from kvref.errors import ConfigError, StoreError
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.handlersocket.connection import HandlerLink
from kvref.storage.mysql.handlersocket.protocol import HandlerError, RefusedError
from kvref.storage.mysql.login import Login

DIRTY: Final = "READ-UNCOMMITTED"
_WHAT: Final = ("HANDLERSOCKET_PORT", "TX_ISOLATION", "SQL_MODE")
_CHANGED: Final = "SQL"  # the origin of a value that SET GLOBAL has put there
_PADS: Final = "PAD_CHAR_TO_FULL_LENGTH"


@dataclass(frozen=True, slots=True)
class Threads:
    """Settings that HandlerSocket's threads read when the server started.

    Args:
        uncommitted: the threads read uncommitted rows; None: unknown, or there are no threads.
        pads: they may show CHAR with its padding.
    """

    uncommitted: bool | None
    pads: bool


def threads(link: MySQLConnection, login: Login) -> Threads:
    """Query the server; a server that does not meet the conditions of `check` counts as one without HandlerSocket.

    Raises:
        KvrefError: of the link.
    """
    variables = _variables(link)
    if variables.get("HANDLERSOCKET_PORT", ("",))[0] != str(login.handlersocket):
        return Threads(uncommitted=None, pads=True)
    (level, origin), (mode, whence) = variables["TX_ISOLATION"], variables["SQL_MODE"]
    if login.handlersocket_level:
        level, origin = login.handlersocket_level, ""
    # The values of the start are gone; the threads still have them (seen: SET GLOBAL changes nothing for them).
    uncommitted = None if origin == _CHANGED else level == DIRTY
    return Threads(uncommitted, pads=whence == _CHANGED or _PADS in mode)


def check(login: Login, connect: Callable[[], MySQLConnection]) -> None:
    """Try HandlerSocket once.

    Args:
        login: names its port.
        connect: opens a connection for SQL.

    Raises:
        ConfigError: the server has none at that port, or the secret is another one.
        StoreError: the server or the port is not reached.
    """
    what = f"store {login.text}: handlersocket={login.handlersocket}"
    with closing(connect()) as link:
        port = _variables(link).get("HANDLERSOCKET_PORT")
    if port is None:
        fix = "start MariaDB with --plugin-load-add=handlersocket, or leave the option out"
        raise ConfigError(f"{what}: this server has no HandlerSocket: {fix}")
    if port[0] != str(login.handlersocket):
        raise ConfigError(f"{what}: this server's handlersocket_port is {port[0] or 'not set'}: name that one")
    try:
        HandlerLink(login, login.timeout).close()
    except RefusedError as error:
        raise ConfigError(f"{what}: {error}") from error
    except HandlerError as error:
        raise StoreError(f"{what}: {error}: does the server listen there, see its handlersocket_address?") from error


def _variables(link: MySQLConnection) -> dict[str, tuple[str, str]]:
    """Return values in force and where they come from; nothing of a server that is not MariaDB."""
    ((version,),) = link.say("SELECT VERSION()")
    if "MariaDB" not in str(version):
        return {}
    names = ", ".join(f"'{each}'" for each in _WHAT)
    rows = link.say(
        "SELECT variable_name, COALESCE(global_value, ''), global_value_origin"  # noqa: S608 - constants
        f" FROM information_schema.system_variables WHERE variable_name IN ({names})"
    )
    return {_text(name).upper(): (_text(value), _text(origin)) for name, value, origin in rows}


def _text(cell: object) -> str:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
