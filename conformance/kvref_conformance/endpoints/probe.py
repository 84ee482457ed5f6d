"""Detect the features of an endpoint before judging it, so that missing features are not judged case by case.

Features are parts of memcached's protocol outside of its core; a request for each is rejected (ERROR, a closed
connection, no reply) or answered. The result is a file that a user can freeze: its features are then demanded.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import tomlkit

from kvref import documents
from kvref.errors import printable
from kvref_conformance.errors import CannotJudge
from kvref_conformance.steps import By, Send, StartRequest, innermost
from kvref_conformance.wire.connection import BINARY_ANSWER, Connection
from kvref_conformance.wire.frames import encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from kvref.addresses import SocketAddress
    from kvref.profiles import Profile
    from kvref_conformance.case import Case
    from kvref_conformance.steps import Step
    from kvref_conformance.wire.connection import Reply

PATIENCE: Final = 1.0
# yrmcds 1.1.9 loses what is stored within a second of flush_all, which is for its own cases to find.
FLUSH_SECONDS: Final = 1.5
KEY: Final = "kvref-no-such-key"
# A request whose answer shows the feature, where there is no item of that name; of `binary` a frame. The first with the
# sentinel in the same packet.
REQUESTS: Final[Mapping[str, bytes]] = {
    "pipelining": f"get {KEY}\r\n".encode(),
    "binary": encode("noop opaque=1"),
    "cas": f"gets {KEY}\r\n".encode(),
    "touch": f"touch {KEY} 0\r\n".encode(),
    "gat": f"gat 0 {KEY}\r\n".encode(),
    "meta": b"mn\r\n",
    "flush_all": b"flush_all\r\n",
    "stats": b"stats\r\n",
    "verbosity": b"verbosity 0\r\n",
    # Refused everywhere: nothing is changed.
    "administration": b"cache_memlimit 7\r\n",
    "bind": f"bind {KEY}\r\n".encode(),
}
# Features that a profile may be without, and the fact that says so.
FACTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("touch", "gat", "meta", "administration"), "verbs.beyond_plugin"),
    "bind": "mapping.supported",
}
REFUSAL: Final = "ERROR\r\n"
WORDS: Final[Mapping[str, str]] = {
    "gets": "cas", "cas": "cas", "touch": "touch", "gat": "gat", "gats": "gat", "flush_all": "flush_all",
    "stats": "stats", "verbosity": "verbosity", "bind": "bind",
    **dict.fromkeys(("cache_memlimit", "refresh_certs", "lru_crawler"), "administration"),
    **dict.fromkeys(("mg", "ms", "md", "ma", "mn", "me"), "meta"),
}  # fmt: skip
STORES: Final = frozenset({"set", "add", "replace", "append", "prepend", "cas", "ms"})
VERB: Final = re.compile(r"(?:^|\n)([a-z_]+)(?=[ \r])")


@dataclass(frozen=True, slots=True)
class Features:
    """The features of an endpoint.

    Args:
        there: whether it has a feature, by name; other features count as present.
        refused: how a feature was rejected, by name, or ""; empty for a profile file.
        file: name of the profile file; empty if the features were detected.
    """

    there: Mapping[str, bool]
    refused: Mapping[str, str]
    file: str = ""

    def missing(self, names: Iterable[str]) -> str:
        """Return the first of these features that is not there, or ""."""
        return next((name for name in names if not self.there.get(name, True)), "")

    def why(self, name: str) -> str:
        """Say why a missing feature counts as missing."""
        return f"{self.file}: {name} = false" if self.file else f"the probe found no {name}: {self.refused[name]}"


# The features if they were not detected.
EVERY: Final = Features({}, {})


@dataclass(frozen=True, slots=True)
class Frozen:
    """A profile file.

    Args:
        profile: name of the facts.
        features: what the endpoint is to have.
    """

    profile: str
    features: Features


def probe(address: SocketAddress, sentinel: bytes, *, flushes: bool) -> Features:
    """Request every feature, each on its own connection.

    Args:
        address: host and port.
        sentinel: the endpoint's whole VERSION line.
        flushes: flush_all may be sent; otherwise it is not tested and counts as present.

    Raises:
        CannotJudge: the endpoint is no longer reachable.
    """
    refusals: dict[str, str] = {}
    for name, request in REQUESTS.items():
        if name == "flush_all" and not flushes:
            continue
        ending = BINARY_ANSWER if name == "binary" else sentinel
        try:
            refusals[name] = _refusal(Connection(address, ending, paced=bool(refusals.get("pipelining"))), request)
        except OSError as error:
            advice = (
                "the endpoint ended during the probe of this feature, or before: use a profile file without the"
                " feature that ends it"
            )
            raise CannotJudge(f"cannot connect to probe {name}: {error.strerror or error}: {advice}") from error
    if refusals.get("flush_all") == "":
        time.sleep(FLUSH_SECONDS)
    return Features({name: not refusal for name, refusal in refusals.items()}, refusals)


def needed(case: Case, profile: Profile) -> set[str]:
    """Return the features that a case needs: those of its verbs that the profile has.

    A malformed request of a verb needs the verb although its answer is ERROR: an endpoint that refuses every request of
    it shows nothing. A verb is not needed where ERROR is one of several allowed answers, or where the profile is
    without it, so that ERROR is what is demanded.

    Args:
        case: of the suite.
        profile: answers what is allowed where endpoints may differ.
    """
    return {name for step in map(innermost, case.steps) for name in _needed(step, profile)}


def as_toml(profile: str, version: str, features: Features) -> str:
    """Return the profile file: what a probe found, with its reasons, for `--profile FILE`."""
    document = tomlkit.document()
    document.add(tomlkit.comment("What an endpoint is judged as: kvref conform HOST:PORT --profile THIS-FILE"))
    document.add("profile", profile)
    document.add(tomlkit.comment(f"detected from VERSION {printable(version)}; false: cases that need it are not run"))
    table = tomlkit.table()
    for name, there in features.there.items():
        item = tomlkit.item(there)
        if not there:
            item.comment(printable(features.refused.get(name, "frozen")))
        table.add(name, item)
    document.add("features", table)
    return tomlkit.dumps(document)


def read(path: Path) -> Frozen:
    """Read a profile file.

    Args:
        path: of it.

    Raises:
        CannotJudge: it is missing or malformed.
    """
    try:
        found = documents.read_toml(path)
    except OSError as error:
        raise CannotJudge(f"{path}: {error.strerror or error}: --dry-run --profile auto prints such a file") from error
    except ValueError as error:
        raise CannotJudge(f"{path}: {error}") from error
    table = found.get("features", {})
    if found.keys() - {"profile", "features"} or not isinstance(found.get("profile"), str):
        raise CannotJudge(f'{path}: a profile file has profile = "NAME" and [features], and nothing else')
    if not isinstance(table, dict):
        raise CannotJudge(f"{path}: features = {table!r}: write a table [features]")
    for name, value in table.items():
        if name not in REQUESTS:
            raise CannotJudge(f"{path}: no feature {name!r}: choose of {', '.join(REQUESTS)}")
        if not isinstance(value, bool):
            raise CannotJudge(f"{path}: {name} = {value!r}: true or false")
    return Frozen(found["profile"], Features(table, {}, path.name))


def _refusal(connection: Connection, request: bytes) -> str:
    """Return how a request is refused; "" where it is answered."""
    with connection:
        reply = connection.exchange((request,), patience=PATIENCE)
    if reply.data and (reply.hang or reply.data.startswith(b"ERROR")):
        return f"{_beginning(reply)}{' and no more' if reply.hang else ''}"
    if reply.limit:
        return f"{_beginning(reply)}: {reply.note(PATIENCE)}"
    if reply.closed:
        return "it closes the connection"
    return "" if reply.data else f"it answers nothing within {PATIENCE:g} s"


def _beginning(reply: Reply) -> str:
    return f"it answers {reply.data[:40].decode('latin-1').strip()!r}"


def _needed(step: Step, profile: Profile) -> Iterator[str]:
    if isinstance(step, Send | StartRequest) and step.binary:
        yield "binary"
    elif isinstance(step, StartRequest):
        yield from _of_words("".join(step.packets), profile)
    elif isinstance(step, Send):
        texts = step.allow.of(profile) if isinstance(step.allow, By) else step.allow
        refusals = sum(text.startswith(REFUSAL) for text in texts)
        if refusals in (0, len(texts)):
            yield from _of_words("".join(step.packets), profile)
        if any(_requests(piece) > 1 for piece in step.packets):
            yield "pipelining"


def _of_words(text: str, profile: Profile) -> Iterator[str]:
    for found in VERB.finditer(text):
        name = WORDS.get(found[1])
        if name is not None and (name not in FACTS or profile.flag(FACTS[name])):
            yield name


def _requests(piece: str) -> int:
    """Count the requests in a packet: its lines without the data blocks."""
    lines, count = iter(piece.split("\r\n")[:-1]), 0
    for line in lines:
        count += 1
        if line.split(" ")[0] in STORES:
            next(lines, None)
    return count
