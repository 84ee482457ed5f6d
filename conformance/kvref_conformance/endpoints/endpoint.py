"""The endpoint under judgement: its address, what it says it is, and the profile it is judged by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvref import addresses, profiles
from kvref.addresses import SocketAddress
from kvref.errors import ConfigError, choices, printable
from kvref_conformance.endpoints.probe import EVERY, Features
from kvref_conformance.endpoints.probe import read as read_profile_file
from kvref_conformance.errors import CannotJudge, CaseFailed
from kvref_conformance.wire.connection import Connection, version_line

# Which plugin answers `VERSION x.y.z`: that release, or the nearest one that was recorded.
PLUGIN_VERSIONS: Final = ((re.compile(r"5\.6\.\d+"), "mysql-5.6"), (re.compile(r"(5\.7|8\.\d+)\.\d+"), "mysql-8.0"))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the endpoint listens and how it is judged.

    Args:
        address: host and port, or the path of a unix socket.
        sentinel: the whole VERSION line.
        profile: facts it is judged by.
        reason: how the profile was chosen, for the reader.
        features: what it has, or, as a profile file says, is to have.
    """

    address: SocketAddress
    sentinel: bytes
    profile: profiles.Profile
    reason: str
    features: Features = EVERY

    @property
    def version(self) -> str:
        """Return what the endpoint says behind VERSION."""
        return _version(self.sentinel)

    @property
    def where(self) -> str:
        """Return HOST:PORT or unix:PATH."""
        return addresses.format_address(self.address)

    def connect(self) -> Connection:
        """Open a connection.

        Raises:
            CaseFailed: the endpoint, which answered before, cannot be reached any more.
        """
        try:
            paced = bool(self.features.missing(["pipelining"]))
            return Connection(self.address, self.sentinel, paced=paced)
        except OSError as error:
            raise CaseFailed(f"cannot connect to {self.where} any more: {error.strerror or error}") from error


def parse_address(text: str) -> SocketAddress:
    """Read HOST:PORT or unix:PATH.

    Raises:
        CannotJudge: it is not of that form.
    """
    try:
        address = addresses.parse_address(text)
    except ConfigError as error:
        raise CannotJudge(str(error)) from error
    if not (address.path or address.port):
        raise CannotJudge(f"address {text!r}: port 0 is not a server's: write {addresses.FORM}")
    return address.socket_address


def find(address: str, profile: str) -> Endpoint:
    """Reach an endpoint and choose its profile.

    Args:
        address: HOST:PORT or unix:PATH.
        profile: a name of `kvref.profiles`, `auto`, or a profile file.

    Raises:
        CannotJudge: no such profile, a malformed file, unreachable, or no memcached.
    """
    frozen = read_profile_file(Path(profile)) if profile.endswith(".toml") else None
    chosen = frozen.profile if frozen is not None else profile
    if chosen != "auto" and chosen not in profiles.names():
        raise CannotJudge(f"no profile {chosen!r}{choices(chosen, ('auto', *profiles.names()))}, or a file FILE.toml")
    place = parse_address(address)
    sentinel = version_line(place)
    if frozen is not None:
        return Endpoint(place, sentinel, profiles.load(chosen), f"as {profile} says", frozen.features)
    if profile != "auto":
        return Endpoint(place, sentinel, profiles.load(profile), "as requested")
    name, reason = _recognise(place, sentinel)
    return Endpoint(place, sentinel, profiles.load(name), reason)


def _recognise(place: SocketAddress, sentinel: bytes) -> tuple[str, str]:
    with Connection(place, sentinel) as connection:
        answer = connection.exchange((b"bind kvc-no-such-mapping\r\n",)).data
    if answer not in {b"NOT_FOUND\r\n", b"SUCCEED\r\n"}:
        words = printable(answer[:40].decode("latin-1").strip())
        reply = f"answers {words}" if answer else "is not answered"
        return "memcached", f"`bind` {reply}: no mappings"
    version = _version(sentinel)
    for pattern, name in PLUGIN_VERSIONS:
        if pattern.match(version):
            return name, f"it has `bind` and says VERSION {version}"
    return "kvref", f"it has `bind` and says VERSION {version}, no release of the C plugin"


def _version(line: bytes) -> str:
    return printable(line.decode("latin-1").removeprefix("VERSION ").strip())
