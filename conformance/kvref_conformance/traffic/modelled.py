"""A server on the loopback interface that replies as the reference model does, for a replay without an endpoint.

Commands as bytes become steps of the model, one after another. A command that the model would write in another way,
such as a meta command with other flags, is beyond it, and so are later commands on its keys, until `set` or `delete`.
"""

from __future__ import annotations

import re
import socket
import socketserver
import struct
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self

from kvref.errors import SuiteError
from kvref_conformance.model import encodings
from kvref_conformance.model import steps as s
from kvref_conformance.model.effects import THIRTY_DAYS, TWO_64
from kvref_conformance.model.expected import Answer
from kvref_conformance.model.model import Model
from kvref_conformance.traffic.dialogue import Dialogue, NotRecordableError
from kvref_conformance.wire.frames import REPLY, SIZE, encode, frames
from kvref_conformance.wire.template import CAS

if TYPE_CHECKING:
    from types import TracebackType

    from kvref.profiles import Profile
    from kvref_conformance.traffic.dialogue import Command
    from kvref_conformance.wire.frames import Frame

# What a reply has in it if the model does not determine it.
BEYOND: Final = b"beyond the model"
MAX_KEY: Final = 250
MAX_VALUE: Final = 1 << 20
_CHUNK: Final = 1 << 16
_OPAQUE: Final = slice(12, 16)
_OPEN: Final = re.compile("<(text|number)>")
# Begin a word with the name of a mapping, and a range.
_NO_KEYS: Final = (b"@@", b"@<", b"@>")
_SIGNS: Final = ("+", "-", *" \t\n\v\f\r")


class ModelServer:
    """The model of one endpoint, which is empty at the beginning.

    Args:
        profile: facts of the endpoint.
        lasts: duration of the recording in seconds; items that expire within it are beyond the model.
    """

    def __init__(self, profile: Profile, lasts: float) -> None:
        self._model = Model(profile)
        self._switching = profile.flag("mapping.supported")
        self._plugin_only = not profile.flag("verbs.beyond_plugin")
        self._lasts = lasts
        self._unknown: set[bytes] = set()
        self._flushes = False  # at a time, or of items, that the model does not determine
        self._lock = threading.Lock()
        self._count = 0
        replies = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                # A client that resets its connection is not a matter of the model.
                with suppress(ConnectionError):
                    replies._serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port."""
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _serve(self, connection: socket.socket) -> None:
        # Each command has its reply at once, also one of several in a packet.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        dialogue = Dialogue()
        with self._lock:
            self._count += 1
            on = f"c{self._count}"
            self._model.take(s.Open(on))
        while data := connection.recv(_CHUNK):
            known = set(dialogue.waiting)
            try:
                done = [each.command for each in dialogue.sent(data) if each.command is not None]
            except NotRecordableError:
                return
            for command in [*done, *dialogue.waiting]:
                if command in known:
                    continue
                if command.verb == "quit":
                    return
                with self._lock:
                    reply = self._reply(on, command)
                if reply:
                    connection.sendall(reply)
                    dialogue.received(reply)

    def _reply(self, on: str, command: Command) -> bytes:
        binary = command.verb.startswith("binary ")
        if command.verb == "binary noop" and len(command.data) == SIZE:
            return _frame(command.data, "noop ok")
        protocol, step, number = _step(on, command, binary=binary)
        if step is None or self._beyond(step, command, number):
            self._unknown.update(command.keys)
            self._flushes = self._flushes or command.base_verb in {"flush", "flush_all"}
            return _beyond(command, binary=binary)
        answer = self._answer(step, number)
        if isinstance(step, s.Flush):
            self._unknown.clear()
        elif _sets(step):
            self._unknown.difference_update(command.keys)
        if answer is None:
            return _beyond(command, binary=binary)
        if protocol != s.BINARY:
            return answer.encode("latin-1")
        return _frame(command.data, answer) if answer else b""

    def _beyond(self, step: s.Request, command: Command, number: int) -> bool:
        """Return whether the reply depends on what the model does not have."""
        if isinstance(step, s.Bind | s.Unknown):
            return True
        if isinstance(step, s.Count) and self._counts_oddly(step):
            return True
        if not isinstance(step, s.Flush) and (self._flushes or not command.keys):
            return True
        if not 0 <= getattr(step, "flags", 0) < 1 << 32 or not 0 <= number < TWO_64:
            return True
        touches = isinstance(step, s.Touch) or (isinstance(step, s.Get) and step.expiry is not None)
        if self._plugin_only and (touches or step.protocol == s.META):
            return True
        if any(
            len(key) > MAX_KEY or b"\0" in key or (self._switching and key.startswith(_NO_KEYS)) for key in command.keys
        ):
            return True
        if len(getattr(step, "value", "")) > MAX_VALUE:
            return True
        expiry = getattr(step, "expiry", 0) or 0
        if 0 < expiry <= self._lasts or expiry > THIRTY_DAYS or expiry < -(1 << 31):
            return True
        if self._plugin_only and not 0 <= expiry < THIRTY_DAYS:
            return True
        return not _sets(step) and not self._unknown.isdisjoint(command.keys)

    def _counts_oddly(self, step: s.Count) -> bool:
        """Return whether a sum depends on how an endpoint reads signs and blanks, or a large amount."""
        (place,) = self._model.places(step) or (None,)
        row = None if place is None else self._model.rows.newest(place)
        large = self._plugin_only and step.amount.isdigit() and int(step.amount) >= 1 << 63
        return large or step.amount.startswith("+") or (row is not None and row.item.value.startswith(_SIGNS))

    def _answer(self, step: s.Request, number: int) -> str | None:
        """Return the model's reply to a command; None if several are allowed."""
        if isinstance(step, s.Store) and step.verb == "cas":
            step = self._numbered(step, number)
        (answer,) = [each for each in self._model.take(step) if isinstance(each, Answer)]
        text = answer.texts[0]
        # A reply with an item has no other placeholder; its value may look like one.
        open_parts = text.count(CAS) != len(answer.numbers) if isinstance(step, s.Get) else _OPEN.search(text)
        if len(answer.texts) > 1 or open_parts:
            return None
        self._model.numbers.assume(answer)
        for each in answer.numbers:
            text = text.replace(CAS, str(each.seen), 1)
        return text

    def _numbered(self, step: s.Store, number: int) -> s.Store:
        """Return a `cas` whose number the model regards as the item's if it is the one that is sent."""
        (place,) = self._model.places(step)
        row = self._model.rows.newest(place)
        if row is None or row.number.seen != number:
            return replace(step, stale=True)
        self._model.open[step.on].seen[place] = row.number
        return step


def _sets(step: s.Request) -> bool:
    """Return whether a command decides what is stored, whatever was there before."""
    return isinstance(step, s.Delete) or (isinstance(step, s.Store) and step.verb == "set")


def _beyond(command: Command, *, binary: bool) -> bytes:
    if command.silent:
        return b""
    if not binary:
        return b"SERVER_ERROR %s\r\n" % BEYOND
    return _frame(command.data, f'beyond 0x83 "{BEYOND.decode()}"')


def _step(on: str, command: Command, *, binary: bool) -> tuple[str, s.Request | None, int]:
    """Return the protocol, the step whose bytes are those of the command, None without one, and its cas number."""
    data = command.data
    if binary:
        data = data[: _OPAQUE.start] + bytes(4) + data[_OPAQUE.stop :]
        (frame,) = frames(data)
        protocol, step, number = s.BINARY, _of_frame(on, command.verb.removeprefix("binary "), frame), frame.cas
    else:
        line, _, block = data.decode("latin-1").partition("\r\n")
        words = line.split(" ")
        protocol = s.META if words[0] in {"mg", "ms", "md", "ma"} else s.TEXT
        make = _of_meta if protocol == s.META else _of_text
        step, number = make(on, words, block.removesuffix("\r\n"))
    if step is None:
        return protocol, None, 0
    try:
        same = encodings.sent(protocol, encodings.request(step, number)) == data
    except (SuiteError, ValueError, struct.error):
        same = False
    return protocol, step if same else None, number


def _of_text(on: str, words: list[str], block: str) -> tuple[s.Request | None, int]:
    silent = words[-1] == "noreply"
    words = words[:-1] if silent else words
    number = 0
    match words:
        case ["get" | "gets" as verb, *keys] if keys:
            return s.Get(on, tuple(keys), cas=verb == "gets"), 0
        case ["gat", expiry, *keys] if keys and _is_number(expiry):
            return s.Get(on, tuple(keys), expiry=int(expiry)), 0
        case [verb, key, flags, expiry, _, *more] if verb in {*s.STORES, "cas"} and _is_number(flags, expiry, *more):
            number = int(more[0]) if verb == "cas" and more else 0
            return s.Store(on, verb, key, block, int(flags), int(expiry), silent), number
        case ["incr" | "decr" as verb, key, amount]:
            return s.Count(on, verb, key, amount, silent), 0
        case ["delete", key]:
            return s.Delete(on, key, silent), 0
        case ["touch", key, expiry] if _is_number(expiry):
            return s.Touch(on, key, int(expiry), silent), 0
        case ["flush_all"] if not silent:
            return s.Flush(on), 0
    return None, number


_META_VERBS: Final = {"E": "add", "R": "replace", "A": "append", "P": "prepend"}


def _of_meta(on: str, words: list[str], block: str) -> tuple[s.Request | None, int]:
    start = 3 if words[0] == "ms" else 2
    given = {word[:1]: word[1:] for word in words[start:]}
    if len(words) < start or not _is_number(*(given[name] for name in "TFCDJ" if name in given)):
        return None, 0
    key, silent, expiry = words[1], "q" in given, int(given.get("T", "0"))
    if words[0] == "mg" and "v" not in given and "T" in given:
        return s.Touch(on, key, expiry, protocol=s.META), 0
    if words[0] == "mg":
        named, cas, touched = "k" in given, "c" in given, expiry if "T" in given else None
        return s.Get(on, (key,), cas, touched, silent, named, protocol=s.META), 0
    if words[0] == "ms":
        verb = "cas" if "C" in given else _META_VERBS.get(given.get("M", ""), "set")
        flags, number = int(given.get("F", "0")), int(given.get("C", "0"))
        return s.Store(on, verb, key, block, flags, expiry, silent, protocol=s.META), number
    if words[0] == "ma":
        initial = int(given["J"]) if "J" in given else None
        verb = "decr" if given.get("M") == "D" else "incr"
        return s.Count(on, verb, key, given.get("D", ""), silent, initial, protocol=s.META), 0
    return s.Delete(on, key, silent, protocol=s.META), 0


def _of_frame(on: str, name: str, frame: Frame) -> s.Request | None:
    key, value = frame.key.decode("latin-1"), frame.value.decode("latin-1")
    verb, silent = name.removesuffix("q"), name.endswith("q")
    numbers = [int.from_bytes(frame.extras[start : start + 4], "big") for start in range(0, len(frame.extras), 4)]
    if verb in {"get", "getk"}:
        return s.Get(on, (key,), silent=silent, named=verb == "getk", protocol=s.BINARY)
    if verb in {"gat", "gatk"} and len(numbers) == 1:
        return s.Get(on, (key,), expiry=numbers[0], silent=silent, named=verb == "gatk", protocol=s.BINARY)
    if verb in s.STORES and len(numbers) in {0, 2}:
        flags, expiry = numbers or (0, 0)
        stored = "cas" if frame.cas and verb == "set" else verb
        return s.Store(on, stored, key, value, flags, expiry, silent, protocol=s.BINARY)
    if verb in {"incr", "decr"} and len(frame.extras) == 20:
        delta, initial, expiry = struct.unpack(">QQI", frame.extras)
        created = None if expiry == encodings.NO_CREATION else initial
        return s.Count(on, verb, key, str(delta), silent, created, protocol=s.BINARY)
    if verb == "delete":
        return s.Delete(on, key, silent, protocol=s.BINARY)
    if verb == "touch" and len(numbers) == 1:
        return s.Touch(on, key, numbers[0], protocol=s.BINARY)
    return s.Flush(on, protocol=s.BINARY) if name == "flush" else None


def _is_number(*words: str) -> bool:
    return all(word.removeprefix("-").isdecimal() and word.isascii() for word in words)


def _frame(request: bytes, words: str) -> bytes:
    """Return the frame that the model's words stand for, in reply to a request."""
    status, _, rest = words.partition(" ")[2].partition(" ")
    fields, _, value = f" {rest}".partition(" value=")
    named = dict(each.split("=", 1) for each in fields.split() if "=" in each)
    text = rest.removeprefix('"').removesuffix('"') if rest.startswith('"') else value
    if "number" in named:
        text = "".join(f"%{byte:02x}" for byte in int(named["number"]).to_bytes(8, "big"))
    given = {
        "magic": REPLY,
        "vbucket": 0 if status == "ok" else int(status, 16),
        "opaque": int.from_bytes(request[_OPAQUE], "big"),
        "cas": named.get("cas", 0),
        "extras": int(named["flags"]).to_bytes(4, "big").hex() if "flags" in named else "",
        "key": named.get("key", ""),
    }
    return encode(
        " ".join((f"0x{request[1]:02x}", *(f"{name}={each}" for name, each in given.items()), f"value={text}"))
    )
