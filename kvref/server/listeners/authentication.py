"""Users of a listener, and the replies to a client that has not authenticated: memcached's two methods.

Text, as memcached 1.6.18 -Y does: the data of a `set` of any key is `USER PASSWORD`. Binary, as memcached -S does: SASL
with the mechanism PLAIN (RFC 4616). At most one line, or one frame, of such a client is buffered, of limited length.
"""

from __future__ import annotations

import hmac
import logging
import re
import stat
from pathlib import Path
from typing import Final

from kvref import documents
from kvref.documents import DocumentError
from kvref.errors import ConfigError
from kvref.protocol import commands as c
from kvref.protocol import foreign
from kvref.protocol.binary import reply_frame
from kvref.protocol.opcodes import HEADER_SIZE, REQUEST, Header, header_at
from kvref.protocol.rules import WireRules
from kvref.server.client_warnings import ClientWarnings

_log = logging.getLogger("kvref.server")

MAX_LINE: Final = 2048  # bytes of `user password`, and of any line; memcached closes the connection after that
MAX_BYTES: Final = 64 << 20
_NOBODY: Final = b"\0"


class Users:
    """Passwords by user; none is empty."""

    def __init__(self, passwords: dict[bytes, bytes]) -> None:
        self._passwords = passwords

    def knows(self, user: bytes, password: bytes) -> bool:
        """Return whether this is the password of that user, in a time that depends on neither."""
        right = self._passwords.get(user)
        same = hmac.compare_digest(_NOBODY if right is None else right, password)
        return same and right is not None


def read_users(path: Path) -> Users:
    """Read a file of users, at most MAX_BYTES long; warn if other users of the machine can read it.

    Raises:
        ConfigError: it cannot be read, has no user, a line of another form or a user twice; the text holds no password.
    """
    try:
        text, mode = documents.read_bytes(path, MAX_BYTES), path.stat().st_mode
    except DocumentError as error:
        raise ConfigError(f"auth_file {str(path)!r}: {error}: name a file of user:password lines") from error
    except OSError as error:
        raise ConfigError(
            f"auth_file {str(path)!r}: {error.strerror}: name a readable file of user:password lines"
        ) from error
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        _log.warning("auth_file %s: other users of this machine can read it: run chmod 600", path)
    passwords: dict[bytes, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line:
            continue
        user, _, password = line.partition(b":")
        if not (user and password) or b" " in user or b"\0" in line or len(line) > MAX_LINE:
            form = f"write user:password, no blank in the user, no NUL, at most {MAX_LINE} bytes"
            raise ConfigError(f"auth_file {path}, line {number}: {form}")
        if user in passwords:
            raise ConfigError(f"auth_file {path}, line {number}: duplicate user: keep one line per user")
        passwords[user] = password
    if not passwords:
        raise ConfigError(f"auth_file {path}: no users: write user:password lines")
    return Users(passwords)


# Replies to an unauthenticated client, up to thirty times as long as its requests; after that it is disconnected.
MAX_ANSWERS: Final = 100
_SET: Final = re.compile(rb"set +[^ ]+ +[^ ]+ +[^ ]+ +([0-9]{1,9})(?: +noreply)? *", re.DOTALL)
_UNKNOWN: Final = b"CLIENT_ERROR unauthenticated\r\n"
_WRONG: Final = b"CLIENT_ERROR authentication failure\r\n"
_NO_TOKEN: Final = b"CLIENT_ERROR bad authentication token format\r\n"
_NO_END: Final = b"CLIENT_ERROR bad command line termination\r\n"
_VERSION: Final = 0x0B
_LIST: Final = 0x20
_AUTH: Final = 0x21
_STEP: Final = 0x22
_BAD: Final = 0x04
_REFUSED: Final = 0x20
_CONTINUE: Final = 0x21
_MAX_MECHANISM: Final = 32  # bytes of a name (MAX_SASL_MECH_LEN of memcached)


class Authenticator:
    """Handle the input of one client until it is authenticated; `release` is the reply to a binary `version`."""

    def __init__(self, users: Users, release: str, client_warnings: ClientWarnings, rules: WireRules) -> None:
        self._users = users
        self._release = release.encode()
        self._client_warnings = client_warnings
        self._rules = rules
        self._buffer = bytearray()
        self._skipped_bytes = 0  # bytes of a token that is too long
        self._answers = 0
        self._begun = self._binary = False
        self._started = False  # SASL_AUTH named PLAIN; SASL_STEP brings the message
        self.peer: object = None  # the client's address
        self.passed = False
        self.closes = False  # further input is ignored
        self.foreign = ""  # name of another protocol that the client used, for which the connection is closed

    @property
    def halfway(self) -> bool:
        """Return True: a client that is not known is never done."""
        return True

    def unfinished(self) -> c.Refused:
        """Return a record for the authentication that is not complete."""
        return c.Refused(b"", frame=c.Frame(0, bytes(4)) if self._binary else None)

    @property
    def first(self) -> bytes:
        """Return the first byte of the protocol that the client used."""
        return bytes([REQUEST]) if self._binary else b"s"

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the replies to bytes from the client, and the bytes after the authentication, none before it."""
        if not self._begun:
            self._begun, self._binary = True, data[0] == REQUEST
        self._buffer += data
        answers: list[bytes] = []
        while not (self.passed or self.closes):
            answer = self._next_frame() if self._binary else self._next_line()
            if answer is None:
                return b"".join(answers), b""
            answers.append(answer)
            self._answers += 1
            self.closes = self.closes or (self._answers == MAX_ANSWERS and not self.passed)
        rest, self._buffer = bytes(self._buffer), bytearray()
        return b"".join(answers), rest if self.passed else b""

    def _next_line(self) -> bytes | None:
        """Answer the first line, with its data; None: more is needed."""
        if self._skipped_bytes:
            gone = self._take(self._skipped_bytes)
            self._skipped_bytes -= len(gone)
            return None if self._skipped_bytes else _NO_TOKEN
        if self._rules.closes_on_foreign and not self._answers and (protocol := foreign.opening(self._buffer)):
            return self._close_foreign(protocol)
        end = self._buffer.find(b"\n")
        if end < 0:
            self.closes = len(self._buffer) > MAX_LINE
            return b"" if self.closes else None
        line = bytes(self._buffer[:end]).removesuffix(b"\r")
        command = _SET.fullmatch(line)
        if command is None and self._rules.closes_on_http and foreign.is_http(line.split()):
            return self._close_foreign(foreign.HTTP)
        if command is None:
            self._take(end + 1)
            return _UNKNOWN
        length = int(command[1])
        if length > MAX_LINE:
            self._take(end + 1)
            self._skipped_bytes = length + 2
            return b""
        if len(self._buffer) < end + 1 + length + 2:
            return None
        self._take(end + 1)
        if self._buffer[length : length + 2] != b"\r\n":
            after = self._buffer.find(b"\n")
            self._take(after + 1 or len(self._buffer))
            return _NO_END
        user, blank, password = self._take(length + 2)[:-2].partition(b" ")
        if not blank:
            return _NO_TOKEN
        return b"STORED\r\n" if self._try(user, password) else _WRONG

    def _next_frame(self) -> bytes | None:
        """Answer the first frame; None: more is needed."""
        if len(self._buffer) < HEADER_SIZE:
            return None
        header = header_at(self._buffer, 0)
        if header.magic != REQUEST:
            self.closes = True
            return b""
        if header.opcode not in (_VERSION, _LIST, _AUTH, _STEP) or header.body_length > MAX_LINE:
            return self._refuse(header, _REFUSED, b"Auth failure.")
        if len(self._buffer) < HEADER_SIZE + header.body_length:
            return None
        body = self._take(HEADER_SIZE + header.body_length)[HEADER_SIZE:]
        if header.opcode in (_VERSION, _LIST):
            if body:
                return self._refuse(header, _BAD, b"Invalid arguments")
            return _reply(header, 0, self._release if header.opcode == _VERSION else b"PLAIN")
        if header.extras_length or not 0 < header.key_length <= len(body):
            return self._refuse(header, _BAD, b"Invalid arguments")
        return self._sasl(header, body[: header.key_length], body[header.key_length :])

    def _sasl(self, header: Header, mechanism: bytes, message: bytes) -> bytes:
        """Answer SASL_AUTH, or a SASL_STEP, which has the message that the SASL_AUTH before it left out.

        As memcached 1.6.18 does: a name longer than any mechanism's is refused as a request and counts as no attempt,
        every other failure counts; SASL_STEP needs the SASL_AUTH, whose mechanism is the one that counts.
        """
        if len(mechanism) > _MAX_MECHANISM:
            return _reply(header, _BAD, b"Invalid arguments")
        acceptable = self._started
        if header.opcode == _AUTH:
            acceptable = mechanism.upper() == b"PLAIN"
            self._started = acceptable and not message
            if self._started:
                return _reply(header, _CONTINUE, b"")  # the message comes in a step (RFC 4422, 3.3)
        if self._check_plain(message, acceptable=acceptable):
            return _reply(header, 0, b"Authenticated")
        return _reply(header, _REFUSED, b"Auth failure.")

    def _check_plain(self, message: bytes, *, acceptable: bool) -> bool:
        """Return whether `[identity] NUL user NUL password` is valid (the identity is the user's) and `acceptable`."""
        identity, _, rest = message.partition(b"\0")
        user, nul, password = rest.partition(b"\0")
        if acceptable and nul and identity in (b"", user):
            return self._try(user, password)
        self._client_warnings.authentication(user, self.peer, succeeded=False)
        return False

    def _try(self, user: bytes, password: bytes) -> bool:
        self.passed = self._users.knows(user, password)
        self._client_warnings.authentication(user, self.peer, succeeded=self.passed)
        return self.passed

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _close_foreign(self, protocol: str) -> bytes:
        self.closes, self.foreign = True, protocol
        return foreign.farewell(protocol)

    def _refuse(self, header: Header, status: int, text: bytes) -> bytes:
        self.closes = True
        return _reply(header, status, text)


def _reply(header: Header, status: int, text: bytes) -> bytes:
    return reply_frame(c.Frame(header.opcode, header.opaque), status, data=text)
