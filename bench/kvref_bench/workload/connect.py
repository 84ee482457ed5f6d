"""Opening a session: a connection that is bound to its mapping before the clock runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref.addresses import connect as open_connection
from kvref.addresses import parse_address
from kvref.errors import cause_of
from kvref_bench.errors import BenchError
from kvref_bench.workload.binary import GET, HEADER, REQUEST, SASL, frame

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from kvref_bench.load.work import Work

_SECONDS: Final = 10.0
_MOST: Final = 65536
_MAX_REPLY_BYTES: Final = 4 << 20


def connect(address: str, work: Work) -> socket.socket:
    """Open a session of the work.

    address: HOST:PORT or unix:PATH.

    Raises:
        BenchError: no server answers there, it rejects the login, or it does not have the mapping.
    """
    try:
        opened = open_connection(parse_address(address).socket_address, _SECONDS)
    except OSError as error:
        cause = cause_of(error)
        raise BenchError(f"no connection to {address}: {cause}; start the endpoint or give another") from error
    try:
        _log_in(opened, address, work)
        _go_to_mapping(opened, address, work)
    except BaseException:
        opened.close()
        raise
    return opened


def _log_in(opened: socket.socket, address: str, work: Work) -> None:
    """Authenticate as memcached's `protocol.txt` and SASL PLAIN have it."""
    if not work.login:
        return
    user, _, password = (part.encode() for part in work.login.partition(":"))
    if work.protocol == "text":
        words = b"%b %b" % (user, password)
        request = b"set login 0 0 %d\r\n%b\r\n" % (len(words), words)
        reply = _exchange(opened, address, request, lambda received: received.endswith(b"\r\n"))
        good = reply == b"STORED\r\n"
    else:
        request = frame(REQUEST, SASL, b"PLAIN", value=b"\0%b\0%b" % (user, password))
        reply = _exchange(opened, address, request, _is_frame)
        good = reply[6:8] == b"\0\0"
    if not good:
        raise BenchError(f"{address} rejects the login of {user.decode()}: {reply[:80]!r}; give one of its --auth-file")


def _go_to_mapping(opened: socket.socket, address: str, work: Work) -> None:
    mapping = work.mapping.encode()
    if work.route == "bind":
        reply = _exchange(opened, address, b"bind %b\r\n" % mapping, lambda received: received.endswith(b"\r\n"))
        good = reply == b"SUCCEED\r\n"
    elif work.route == "switch" and work.protocol == "text":
        # The value names the table, in 5.6 that of the default mapping.
        ends = (b"END\r\n", b"ERROR\r\n")
        reply = _exchange(opened, address, b"get @@%b\r\n" % mapping, lambda received: received.endswith(ends))
        good = reply.startswith(b"VALUE @@%b 0 " % mapping)
    elif work.route == "switch":
        reply = _exchange(opened, address, frame(REQUEST, GET, b"@@" + mapping), _is_frame)
        good = reply[6:8] == b"\0\0"
    else:
        return
    if not good:
        raise BenchError(
            f"{address} does not know the mapping {work.mapping!r} (route {work.route}): it answered {reply[:80]!r}; "
            "add it to the table containers and load the plugin again"
        )


def _is_frame(received: bytes) -> bool:
    return len(received) >= HEADER.size and len(received) >= HEADER.size + HEADER.unpack_from(received)[6]


def _exchange(opened: socket.socket, address: str, request: bytes, whole: Callable[[bytes], bool]) -> bytes:
    opened.sendall(request)
    reply = b""
    while not whole(reply):
        try:
            data = opened.recv(_MOST)
        except OSError as error:
            raise BenchError(f"{address} did not answer {request!r}: {cause_of(error)}") from error
        if not data:
            raise BenchError(f"{address} closed the connection after {request!r}")
        reply += data
        if len(reply) > _MAX_REPLY_BYTES:
            raise BenchError(f"{address} answered {request!r} with more than {_MAX_REPLY_BYTES} bytes")
    return reply
