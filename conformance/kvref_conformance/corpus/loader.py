"""Recorded steps as the steps that the player takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref.errors import SuiteError
from kvref_conformance.corpus.conversation import MemcachedStep, Server, Sleep, SqlStep
from kvref_conformance.frames import decode_requests, encode
from kvref_conformance.steps import AwaitSql, Disconnect, Eventually, Pause, Restart, Send, Sql, StartRequest, StartSql
from kvref_conformance.template import Names

if TYPE_CHECKING:
    from kvref_conformance.corpus.conversation import Step as Recorded
    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.steps import Step

# A brace of a recording begins no name.
BRACE: Final = "{brace}"
JOIN_SECONDS: Final = 120.0
# Plus n: the n-th cas number, while frames are put into words. No server is near it.
_MARK: Final = 0x6361736E756D0000


class CasNames(Names):
    """The names of a recording: `c3` is the third cas number that was received.

    A number that was never received is 0: no row that the plugin wrote has it.
    """

    def __init__(self) -> None:
        super().__init__({"brace": "{"}, lambda _: "0")

    def __getitem__(self, name: str) -> str:
        return self.texts.get(name, "0")

    def learn(self, number: int) -> None:
        """Take note of a number that was received, except 0."""
        if number and str(number) not in self.texts.values():
            self.texts[f"c{len(self.texts)}"] = str(number)


def steps_of(recorded: Recorded) -> tuple[Step, ...]:
    """Return the steps of a recorded one, which is no crowd; the last of them shows its reply.

    Raises:
        SuiteError: its frames cannot be written in words.
    """
    match recorded:
        case MemcachedStep():
            return _talk(recorded)
        case SqlStep(join=True):
            return (AwaitSql(recorded.sql, patience=JOIN_SECONDS),)
        case SqlStep(exec=str(statement)):
            text, poll = statement.replace("{", BRACE), recorded.poll
            if recorded.asynchronous:
                return (StartSql(text, recorded.sql),)
            step = Sql(text, on=recorded.sql)
            return (step if poll is None else Eventually(step, poll["timeout"], poll["every"]),)
        case Server():
            return (Restart(recorded.server),)
        case Sleep():
            return (Pause(recorded.sleep),)
    raise TypeError(f"{recorded} is no step of the player")


def _talk(recorded: MemcachedStep) -> tuple[Step, ...]:
    on, binary = recorded.mc, recorded.hex is not None
    text = _words(_parts(recorded.hex)) if binary else _template(_parts(recorded.send))
    how = "reset" if recorded.abort else "close" if recorded.close else "half" if recorded.half else ""
    if how:
        sent = (StartRequest((text,), on, 0.0, binary),) if text and how != "reset" else ()
        return (*sent, Disconnect(on, how))
    # Without a text: what has come meanwhile.
    return (Send((text,), (), on, quiet=recorded.quiet, patience=recorded.first or 0.0, binary=binary),)


def _parts(sent: Json) -> list[str | int]:
    """Return the texts of a `send`, and the n of its holes `{"cas": n}`."""
    parts = sent if isinstance(sent, list) else [] if sent is None else [sent]
    return [part if isinstance(part, str) else _number(part) for part in parts]


def _number(part: Json) -> int:
    number = part["cas"] if isinstance(part, dict) else None
    assert isinstance(number, int), f"{part!r} in a `send` is neither a text nor a hole"
    return number


def _template(parts: list[str | int]) -> str:
    return "".join(part.replace("{", BRACE) if isinstance(part, str) else f"{{c{part}}}" for part in parts)


def _words(parts: list[str | int]) -> str:
    data = bytes.fromhex("".join(part if isinstance(part, str) else f"{_MARK + part:016x}" for part in parts))
    words, numbers = decode_requests(data), [part for part in parts if isinstance(part, int)]
    if encode(words) != data:
        if numbers:
            raise SuiteError(f"{data.hex()}: frames with a cas number that cannot be written in words")
        words = "raw " + "".join(f"%{byte:02x}" for byte in data)
    words = words.replace("{", BRACE)
    for number in numbers:
        words = words.replace(f"cas={_MARK + number}", f"cas={{c{number}}}")
    return words
