"""pymemcache's clients with a mapping: every connection is bound when it is opened, and its replies are limited.

`@@` and `bind` last as long as the TCP connection, which pymemcache closes after every error and opens again unseen. So
the binding belongs where connections are made: a subclass of `Client`, which `PooledClient` takes as its
`client_class`. No `@@` word is sent: one of 250 bytes ends 5.6.14, an unknown one is answered like a miss,
delete, incr and decr read it as a key, 8.0.33 uses only the first of a multi-get (chapters `mapping` and
`mapped_multiget` of the requirements).
"""

from __future__ import annotations

import re
import select
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from kvref.client.arguments import Key
from kvref.client.errors import (
    CallError,
    InvalidReplyError,
    LinkError,
    MappedError,
    ServerError,
    UnsupportedError,
)
from kvref.client.options import Server
from kvref.client.protocol import Handshake, check_ranges


class LimitedSocket:
    """A connected socket, also with TLS, that receives at most `max_answer` bytes between two requests."""

    def __init__(self, connected: socket.socket, name: str, max_answer: int) -> None:
        self._connected = connected
        self._name = name
        self._max_answer = max_answer
        self._received = 0

    def sendall(self, data: bytes) -> None:
        self._received = 0
        self._connected.sendall(data)

    def recv(self, size: int) -> bytes:
        """Return bytes of the answer, b"" at the end of the connection; raises InvalidReplyError beyond the limit."""
        data = self._connected.recv(size)
        self._received += len(data)
        self.expect(0)
        return data

    def expect(self, size: int) -> None:
        """Raise InvalidReplyError if the answer exceeds the limit after as many bytes more."""
        if self._received + size > self._max_answer:
            raise InvalidReplyError(
                f"{self._name}: the answer cannot be read: it has more than {self._max_answer} bytes"
            )

    def has_unsolicited(self) -> bool:
        """Return whether bytes, or the end of the connection, arrived without a request."""
        tls = self._connected
        if not isinstance(tls, ssl.SSLSocket):
            return _readable(tls)
        if not tls.pending() and not _readable(tls):
            return False
        # Records of TLS itself, such as tickets, are not stray bytes: reading decides.
        timeout = tls.gettimeout()
        tls.settimeout(0)
        try:
            tls.recv(1)
        except ssl.SSLWantReadError:
            return False
        except OSError:
            return True
        finally:
            tls.settimeout(timeout)
        return True

    def close(self) -> None:
        self._connected.close()


try:
    from pymemcache import exceptions as theirs  # type: ignore[import-untyped]
    from pymemcache.client.base import (  # type: ignore[import-untyped]
        Client,
        PooledClient,
    )
    from pymemcache.pool import ObjectPool  # type: ignore[import-untyped]
except ModuleNotFoundError as lack:
    text = "kvref.client.MappedClient needs pymemcache: pip install 'kvref[client]'"
    raise ImportError(text, name=lack.name) from lack

_ROW = re.compile(rb"VALUE (.+) (\d+) (\d+)", re.DOTALL)
_ROW_WITH_CAS = re.compile(rb"VALUE (.+) (\d+) (\d+) \d+", re.DOTALL)

_KNOWN = {
    name: re.compile(answers, re.DOTALL)
    for name, answers in (
        (b"delete", rb"DELETED|NOT_FOUND"), (b"touch", rb"TOUCHED|NOT_FOUND"), (b"flush_all", rb"OK"),
        (b"version", rb"VERSION .*"), (b"incr", rb"\d+ *|NOT_FOUND"), (b"decr", rb"\d+ *|NOT_FOUND"),
    )
}  # fmt: skip


class BoundClient(Client):  # type: ignore[misc]
    """One connection, opened again after an error; all of its errors are those of `kvref.client`.

    Args:
        server: as for pymemcache: (host, port), HOST:PORT or the path of a socket.
        greeting: requests sent before all others.
        max_answer: limit of the answers to one request, in bytes.
    """

    sock: Any  # pymemcache's socket, within a LimitedSocket.

    def __init__(self, server: Server, *, handshake: Handshake, max_answer: int, **options: Any) -> None:
        super().__init__(server, **options)
        self._handshake = handshake
        self._max_answer = max_answer
        self._version: str | None = None
        self._in_range = False

    def get_range(self, word: bytes) -> dict[bytes, Any]:
        """Return the rows of a range under their own keys; raises UnsupportedError if the server has no ranges."""
        if self.sock is None or self._version is None:
            self._version = self.version().decode()
        check_ranges(self._version)
        self._in_range = True
        try:
            rows: dict[bytes, Any] = self._fetch_cmd(b"get", [word], expect_cas=False)
        finally:
            self._in_range = False
        return rows

    def gat(self, key: Key, expire: int, default: Any) -> Any:
        """Return the value of a key and set when its row expires; the default without a row."""
        return self._fetch_cmd(b"gat %d" % expire, [key], expect_cas=False).get(key, default)

    def gats(self, key: Key, expire: int) -> tuple[Any, Any]:
        """Return value and cas number of a key and set when its row expires; (None, None) without a row."""
        found: tuple[Any, Any] = self._fetch_cmd(b"gats %d" % expire, [key], expect_cas=True).get(key, (None, None))
        return found

    def _connect(self) -> None:
        super()._connect()
        self.sock = LimitedSocket(self.sock, self._name(), self._max_answer)
        self._version = None
        for verb, request in self._handshake.requests():
            try:
                answer = self._misc_cmd([request], verb.encode(), noreply=False)[0]
            except UnsupportedError:
                answer = b"ERROR"
            if error := self._handshake.reply_error(verb, answer, self._name()):
                self.close()
                raise error

    def _fetch_cmd(self, name: bytes, *arguments: Any, **named: Any) -> Any:
        with self._faults(name):
            return super()._fetch_cmd(name, *arguments, **named)

    def _store_cmd(self, name: bytes, *arguments: Any, **named: Any) -> Any:
        with self._faults(name):
            return super()._store_cmd(name, *arguments, **named)

    def _misc_cmd(self, commands: Any, name: bytes, noreply: bool | None, end_tokens: bytes | None = None) -> Any:
        with self._faults(name):
            answers: list[bytes] = super()._misc_cmd(commands, name, noreply, end_tokens)
            known = _KNOWN.get(name) if end_tokens is None else None
            for answer in answers:
                # pymemcache reads any other line as a miss, or fails to read a number.
                if known is not None and not known.fullmatch(answer):
                    self.close()
                    raise theirs.MemcacheUnknownError(answer[:60])
            return answers

    def _extract_value(
        self, expect_cas: bool, line: bytes, buf: bytes, remapped_keys: dict[bytes, Any], prefixed_keys: list[bytes]
    ) -> Any:
        head = (_ROW_WITH_CAS if expect_cas else _ROW).fullmatch(line)
        if head is None or not (self._in_range or head[1] in remapped_keys):
            raise theirs.MemcacheUnknownError(line[:60])
        self.sock.expect(int(head[3]) - len(buf))
        if self._in_range:
            # pymemcache looks up a reply's key among the requested ones; a row of a range has its own key. 8.0.33
            # sends an integer key as bytes, of which one may be a blank.
            line, remapped_keys = b"VALUE row %s %s" % (head[2], head[3]), {b"row": head[1]}
        return super()._extract_value(expect_cas, line, buf, remapped_keys, prefixed_keys)

    @contextmanager
    def _faults(self, name: bytes) -> Iterator[None]:
        # Bytes before the request are the connection's end or the error of a `noreply`: no reply to this call.
        if self.sock is not None and self.sock.has_unsolicited():
            self.close()
        verb = name.decode("utf-8", "replace").partition(" ")[0]
        try:
            yield
        except MappedError:
            raise
        except theirs.MemcacheUnexpectedCloseError as error:
            raise LinkError(f"{verb}: {self._name()} closed the connection without an answer") from error
        except theirs.MemcacheUnknownCommandError as error:
            raise UnsupportedError(f"{self._name()} does not support {verb!r}") from error
        except theirs.MemcacheClientError as error:
            raise CallError(f"{verb}: {self._name()} rejected it: {_text(error)}") from error
        except theirs.MemcacheServerError as error:
            raise ServerError(f"{verb}: {self._name()} failed: {_text(error)}") from error
        except OSError as error:
            raise LinkError(f"{verb}: {self._name()}: {error.strerror or error or 'no answer in time'}") from error
        except theirs.MemcacheUnknownError as error:
            raise InvalidReplyError(f"{verb}: {self._name()}: {error.args[0]!r} is not a valid reply") from error
        except BaseException:
            # An interrupt, or a serde's own error: the answer that is still to come would be the next call's.
            self.close()
            raise

    def _name(self) -> str:
        return self.server if isinstance(self.server, str) else "{}:{}".format(*self.server)


def _pool_method(name: str) -> Callable[..., Any]:
    """Return a method of a pool that calls one of `BoundClient` on a free connection."""

    def call(pool: BoundPool, *arguments: Any) -> Any:
        with pool.client_pool.get_and_release(destroy_on_fail=True) as client:
            return getattr(client, name)(*arguments)

    return call


class BoundPool(PooledClient):  # type: ignore[misc]
    """Several connections to one server, for threads; the arguments are those of `BoundClient`."""

    def __init__(self, server: Server, *, handshake: Handshake, max_answer: int, **options: Any) -> None:
        super().__init__(server, **options)
        self.client_class = partial(BoundClient, handshake=handshake, max_answer=max_answer)
        self.client_pool = _Pool(
            self._create_client, after_remove=lambda client: client.close(), max_size=options["max_pool_size"]
        )

    gat, gats, get_range = map(_pool_method, ("gat", "gats", "get_range"))


class _Pool(ObjectPool):  # type: ignore[misc]
    def get(self) -> Any:
        try:
            return super().get()
        except RuntimeError as error:
            raise CallError(f"pool_size={self.max_size}: that many threads are in calls already") from error


def open_client(server: Server, pool_size: int | None, **options: Any) -> BoundClient | BoundPool:
    """Return the client of a server: a pool of at most `pool_size` connections, or one connection for one thread."""
    if pool_size is None:
        return BoundClient(server, **options)
    return BoundPool(server, max_pool_size=pool_size, **options)


def _readable(sock: socket.socket) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def _text(error: Exception) -> str:
    first = error.args[0] if error.args else error
    return first.decode("utf-8", "backslashreplace") if isinstance(first, bytes) else str(first)
