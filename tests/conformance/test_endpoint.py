"""Finding the endpoint and choosing its profile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvref.addresses import SocketAddress
from kvref_conformance.endpoints import endpoint
from kvref_conformance.errors import CannotJudge

Make = Callable[..., Any]
BIND = b"bind kvc-no-such-mapping"


@pytest.mark.parametrize(
    ("text", "place"),
    [("127.0.0.1:11211", ("127.0.0.1", 11211)), ("[::1]:1", ("::1", 1)), ("unix:/run/a b:1", "/run/a b:1")],
)
def test_an_address_is_host_and_port_or_a_unix_socket(text: str, place: SocketAddress) -> None:
    assert endpoint.parse_address(text) == place


@pytest.mark.parametrize(
    "text", ["", "11211", "host", "host:", "host:x", ":11211", "host:0", "host:65536", "host:-1", "unix:", "unix:\0"]
)
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(CannotJudge, match="write "):
        endpoint.parse_address(text)


@pytest.mark.parametrize(
    ("bind", "version", "profile"),
    [
        (b"ERROR\r\n", b"VERSION 1.6.18\r\n", "memcached"),
        (b"ERROR\r\n", b"VERSION 8.0.33\r\n", "memcached"),
        (b"NOT_FOUND\r\n", b"VERSION 5.6.14\r\n", "mysql-5.6"),
        (b"NOT_FOUND\r\n", b"VERSION 5.7.44-log\r\n", "mysql-8.0"),
        (b"NOT_FOUND\r\n", b"VERSION 8.0.33\r\n", "mysql-8.0"),
        (b"NOT_FOUND\r\n", b"VERSION 1.6.0+0.1.0-kvref\r\n", "kvref"),
    ],
)
def test_the_profile_is_what_the_endpoint_shows(scripted: Make, bind: bytes, version: bytes, profile: str) -> None:
    found = endpoint.find(scripted({BIND: bind}, version).where, "auto")
    assert found.profile.name == profile
    assert "bind" in found.reason
    assert found.version == version.decode().removeprefix("VERSION ").strip()


def test_a_wrong_profile_is_refused_before_anything_is_reached() -> None:
    with pytest.raises(
        CannotJudge,
        match=r"no profile 'mysql-9.7', did you mean 'mysql-8.0': choose one of auto, kvref, memcached, mysql-5.6, mysql-8.0",
    ):
        endpoint.find("127.0.0.1:1", "mysql-9.7")
