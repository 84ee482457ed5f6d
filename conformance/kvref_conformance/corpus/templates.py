"""What a recording sends as the templates of steps: text and frames in words, with names for cas numbers.

In a template `{c3}` is the third cas number that was received, and `{brace}` a brace, which would begin a name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kvref_conformance.judging.player import packets_of
from kvref_conformance.steps import Send
from kvref_conformance.wire.frames import decode_requests, encode
from kvref_conformance.wire.template import Names

if TYPE_CHECKING:
    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.steps import StartRequest

BRACE: Final = "{brace}"
_CAS: Final = re.compile(r"\{c(\d+)\}")
# Plus n: the n-th cas number, while frames are put into words. No server is near it.
_MARK: Final = 0x6361736E756D0000
_MARKED: Final = re.compile(f"{_MARK >> 16:012x}([0-9a-f]{{4}})")


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


def request(on: str, parts: Json, *, binary: bool = False, quiet: bool = False, patience: float = 0.0) -> Send:
    """Return the step that sends bytes.

    Args:
        on: name of the connection.
        parts: latin-1 characters, of frames hexadecimal digits, or a list of these and `{"cas": n}`: a cas number.
        binary: they are frames.
        quiet: no reply is expected, or none yet.
        patience: seconds to wait for the first byte; 0: the player's own.
    """
    listed = parts if isinstance(parts, list) else [parts]
    each = [part if isinstance(part, str) else _number(part) for part in listed]
    return Send((_words(each) if binary else _template(each),), (), on, quiet=quiet, patience=patience, binary=binary)


def sent(step: Send) -> Json:
    """Return what a step sends as the `parts` of `request`."""
    text = "".join(step.packets)
    if step.binary:
        digits = encode(without_placeholders(_CAS.sub(_marked, text))).hex()
        pieces = _MARKED.split(digits) if _CAS.search(text) else [digits]
        parts: list[Json] = [{"cas": int(each, 16)} if n % 2 else each for n, each in enumerate(pieces)]
    else:
        pieces = _CAS.split(text)
        parts = [{"cas": int(each)} if n % 2 else without_placeholders(each) for n, each in enumerate(pieces)]
    parts = [part for part in parts if part != ""]
    return parts if len(pieces) > 1 else parts[0] if parts else ""


def bytes_of(step: Send | StartRequest) -> bytes:
    """Return what a step sends, cas numbers as 0."""
    return b"".join(packets_of(step, list(map(CasNames().render, step.packets))))


def without_placeholders(template: str) -> str:
    """Return a template without cas numbers, such as a statement, as text."""
    return template.replace(BRACE, "{")


def escaped(text: str) -> str:
    """Return text as a template."""
    return text.replace("{", BRACE)


def _number(part: Json) -> int:
    number = part["cas"] if isinstance(part, dict) else None
    assert isinstance(number, int), f"{part!r} is neither a text nor a cas number"
    return number


def _template(parts: list[str | int]) -> str:
    return "".join(escaped(part) if isinstance(part, str) else f"{{c{part}}}" for part in parts)


def _words(parts: list[str | int]) -> str:
    data = bytes.fromhex("".join(part if isinstance(part, str) else f"{_MARK + part:016x}" for part in parts))
    numbers = [part for part in parts if isinstance(part, int)]
    words = escaped(decode_requests(data))
    for number in numbers:
        words = words.replace(f"cas={_MARK + number}", f"cas={{c{number}}}")
    if len(_CAS.findall(words)) == len(numbers) and encode(without_placeholders(_CAS.sub(_marked, words))) == data:
        return words
    # Malformed frames that no words have.
    return "raw " + "".join(_escapes(part) if isinstance(part, str) else f"%={{c{part}}}=" for part in parts)


def _escapes(digits: str) -> str:
    return "".join(f"%{byte:02x}" for byte in bytes.fromhex(digits))


def _marked(found: re.Match[str]) -> str:
    return str(_MARK + int(found[1]))
