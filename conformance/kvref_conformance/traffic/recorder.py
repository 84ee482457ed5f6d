"""Write exchanges as conversations of the one format of recordings, in parts, with times and holes for cas numbers."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

from kvref_conformance.corpus.conversation import Conversation, Recorded, to_json
from kvref_conformance.corpus.holes import cas_number, cas_spans
from kvref_conformance.corpus.templates import request
from kvref_conformance.steps import AwaitReply, Disconnect
from kvref_conformance.traffic.dialogue import SETTING
from kvref_conformance.wire.frames import CAS, frames

if TYPE_CHECKING:
    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.steps import Send
    from kvref_conformance.traffic.dialogue import Command, Exchange
    from kvref_conformance.traffic.mask import Mask

GROUP: Final = "traffic"
# A part is written at so many steps or bytes, whichever comes first.
MAX_STEPS: Final = 500
MAX_BYTES: Final = 1 << 20
# Number of the last cas numbers, and of the last counted or extended keys, that are remembered.
MAX_REMEMBERED: Final = 1 << 17
MASKED: Final = {"bytes": "masked"}
EOF: Final = "<EOF>"
# Verbs that make a new value from the old one, so that masked values do not follow from each other.
_DERIVING: Final = frozenset({"append", "prepend", "incr", "decr", "ma"})
_COUNTING: Final = frozenset({"incr", "decr", "ma"})
# The cas number in a line of `cas`, and in one of `ms`, `md` and `ma`.
_CAS: Final = re.compile(r"cas +[^ ]+ +[^ ]+ +[^ ]+ +[^ ]+ +(\d{1,20})[ \r\n]", re.ASCII)
_META_CAS: Final = re.compile(r"m[sda] [^\r\n]*? C(\d{1,20})[ \r\n]", re.ASCII)


class Bounded(OrderedDict[Any, Any]):
    """A mapping that forgets what was used longest ago."""

    def remember(self, key: object, value: object) -> None:
        """Set a value and forget the oldest one beyond MAX_REMEMBERED."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > MAX_REMEMBERED:
            self.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Source:
    """What is recorded.

    Args:
        endpoint: address of the server.
        version: key of `got`.
        began: UTC, as in a report.
    """

    endpoint: str
    version: str
    began: str


class Recorder:
    """Writes one recording; memory is bounded by a part of it and by MAX_REMEMBERED.

    Args:
        file: of the recording.
        source: what is recorded.
        mask: for keys and values; None to record them as they are.
    """

    def __init__(self, file: IO[str], source: Source, mask: Mask | None = None) -> None:
        self.steps = 0
        self.parts = 0
        self._file = file
        self._source = source
        self._mask = mask
        self._part: list[Recorded] = []
        self._bytes = 0
        self._cas = Bounded()
        self._numbers = 0
        self._derived = Bounded()

    def exchange(self, name: str, exchange: Exchange, at: float, took: float, *, ended: bool = False) -> None:
        """Record a command with its reply.

        Args:
            name: of the connection.
            exchange: the command and the reply.
            at: seconds after the beginning of the recording at which the command was complete.
            took: seconds until the reply was complete; 0 without one.
            ended: the server closed the connection behind the reply.
        """
        command, binary = exchange.command, exchange.binary
        quiet = command is not None and (command.silent or command.quiet) and not exchange.reply
        step: AwaitReply | Send = AwaitReply((), name, 0.0)
        if command is not None:
            step = request(name, self._sent(command, binary=binary), binary=binary, quiet=quiet)
        got = self._got(exchange, ended=ended)
        self._add(
            Recorded(
                step,
                {} if quiet and got == "" else {self._source.version: got},
                at=round(at, 6),
                took=round(took, 6) or None,
            ),
            len(exchange.reply) + (0 if command is None else len(command.data)),
        )

    def closed(self, name: str, at: float) -> None:
        """Record that the client closed a connection."""
        self._add(Recorded(Disconnect(name, "close"), at=round(at, 6)), 0)

    def flush(self) -> None:
        """Write what has come since the last part."""
        if not self._part:
            return
        self.parts += 1
        about = {"began": self._source.began, "part": self.parts, "masked": self._mask is not None}
        title = f"Traffic of {self._source.endpoint} from {self._source.began}, part {self.parts}"
        part = Conversation(f"{GROUP}-{self.parts}", GROUP, title, tuple(self._part), traffic=about)
        self._file.write(json.dumps(to_json(part)) + "\n")
        self._file.flush()
        self._part, self._bytes = [], 0

    def _add(self, step: Recorded, size: int) -> None:
        self._part.append(step)
        self._bytes += size
        self.steps += 1
        if len(self._part) >= MAX_STEPS or self._bytes >= MAX_BYTES:
            self.flush()

    def _sent(self, command: Command, *, binary: bool) -> Json:
        data = command.data if self._mask is None else self._mask.command(command)
        verb = command.base_verb
        for key in command.keys:
            if verb in _DERIVING:
                self._derived.remember(key, None)
            elif verb in SETTING:
                self._derived.pop(key, None)
        if binary:
            n = self._cas.get(next(frames(data)).cas)
            if n is None:
                return data.hex()
            return [each for each in (data[: CAS.start].hex(), {"cas": n}, data[CAS.stop :].hex()) if each]
        text = data.decode("latin-1")
        found = (_CAS if command.verb == "cas" else _META_CAS).match(text)
        n = None if found is None else self._cas.get(int(found[1]))
        if found is None or n is None:
            return text
        return [text[: found.start(1)], {"cas": n}, text[found.end(1) :]]

    def _got(self, exchange: Exchange, *, ended: bool) -> Json:
        ending = EOF if ended else ""
        reply: bytes | None = exchange.reply
        if self._mask is not None and reply:
            reply = self._masked(exchange)
        if reply is None:
            return dict(MASKED)
        answer = reply.hex() if exchange.binary else reply.decode("latin-1")
        parts: list[Json] = []
        place = 0
        for begin, end in cas_spans(answer, hexadecimal=exchange.binary):
            number = cas_number(answer[begin:end], hexadecimal=exchange.binary)
            if number:
                parts += [answer[place:begin], {"cas": self._n(number)}]
                place = end
        parts = [each for each in (*parts, answer[place:] + ending) if each != ""]
        return "".join(map(str, parts)) if not any(isinstance(each, dict) for each in parts) else parts

    def _masked(self, exchange: Exchange) -> bytes | None:
        assert self._mask is not None
        command, reply = exchange.command, exchange.reply
        if command is not None:
            verb = command.base_verb
            counted = verb in _COUNTING and not reply.startswith((b"NOT_FOUND", b"NF", b"CLIENT_ERROR"))
            shows = exchange.binary or reply.startswith((b"VALUE", b"VA "))
            if counted or (shows and any(key in self._derived for key in command.keys)):
                return None
        return self._mask.reply(command, exchange.reply)

    def _n(self, number: int) -> int:
        if number not in self._cas:
            self._numbers += 1
            self._cas.remember(number, self._numbers)
        n: int = self._cas[number]
        return n
