"""The scripted server survives every client: requests in any segments, and bytes that are not requests."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvref_conformance.clients.exchange import Exchange
from kvref_conformance.clients.login import Gate
from kvref_conformance.clients.requirements import Requirement, load
from kvref_conformance.wire.frames import HEADER, OPCODES

if TYPE_CHECKING:
    from collections.abc import Iterable

REQUIREMENTS = load()
NEVER = struct.pack(">QQI", 1, 0, 0xFFFFFFFF)
STORES = {"set", "set_noreply", "add", "replace", "append", "prepend", "cas"}


def text_request(name: str, arguments: list[Any]) -> bytes:
    key, *more = (" ".join(each) if isinstance(each, list) else str(each) for each in arguments)
    if name in STORES:
        value = more[0].encode()
        words = [name.removesuffix("_noreply"), key, "0 0", str(len(value)), *(["1"] if name == "cas" else [])]
        tail = " noreply" if name.endswith("_noreply") else ""
        return f"{' '.join(words)}{tail}\r\n".encode() + value + b"\r\n"
    if name == "gat":
        return f"gat {more[0]} {key}\r\n".encode()
    return " ".join([name.removesuffix("_multi"), key, *more]).encode() + b"\r\n"


def meta_request(name: str, arguments: list[Any]) -> bytes:
    key, *more = arguments
    if name == "get_multi":
        return b"".join(f"mg {each} f v k q\r\n".encode() for each in key) + b"mn\r\n"
    if name in STORES:
        mode = {"add": "E", "replace": "R", "append": "A", "prepend": "P"}.get(name, "S")
        flags = " C1" if name == "cas" else " q" if name == "set_noreply" else ""
        return f"ms {key} {len(more[0].encode())} M{mode}{flags}\r\n{more[0]}\r\n".encode()
    line = {
        "incr": f"ma {key} v D{more[-1:]}", "decr": f"ma {key} v MD D{more[-1:]}", "delete": f"md {key}",
        "touch": f"mg {key} T1", "gets": f"mg {key} v c",
    }.get(name, f"mg {key} f c v")  # fmt: skip
    return line.replace("[", "").replace("]", "").encode() + b"\r\n"


def frame(name: str, key: str = "", extras: bytes = b"", value: bytes = b"", cas: int = 0) -> bytes:
    raw = key.encode()
    body = extras + raw + value
    opcode = OPCODES[name]
    return HEADER.pack(0x80, opcode, len(raw) % 65536, len(extras), 0, 0, len(body), raw[:4].ljust(4), cas) + body


def binary_request(name: str, arguments: list[Any]) -> bytes:
    key, *more = arguments
    if name == "get_multi":
        return b"".join(frame("getkq", each) for each in key) + frame("noop")
    if name in {"append", "prepend"}:
        return frame(name, key, value=more[0].encode())
    if name in STORES:
        opcode = {"cas": "set", "set_noreply": "setq"}.get(name, name)
        return frame(opcode, key, bytes(8), more[0].encode(), 1 if name == "cas" else 0)
    if name in {"incr", "decr"}:
        return frame(name, key, NEVER)
    return frame({"gets": "get"}.get(name, name), key, bytes(4) if name in {"touch", "gat"} else b"")


REQUESTS = {"text": text_request, "binary": binary_request, "meta": meta_request}


def login(one: Requirement, protocol: str) -> bytes:
    if not one.credentials:
        return b""
    words = [each.encode() for each in one.credentials]
    if protocol == "binary":
        return frame("sasl_list") + frame("sasl_auth", "PLAIN", value=b"\0".join([b"", *words]))
    token = b" ".join(words)
    return b"set auth 0 0 %d\r\n%s\r\n" % (len(token), token)


def sent(one: Requirement, segments: Iterable[bytes], *, honest: bool = False) -> bytes:
    """Return all that the scripted server of a requirement sends for these segments."""
    fault = None if honest else one.fault
    exchange = Exchange(one.store(), Gate(one.entry.credentials), lambda verbs: fault if on(verbs) else None, [])

    def on(verbs: set[str]) -> bool:
        return fault is not None and fault.on in verbs

    replies = b""
    for segment in segments:
        if exchange.receive(segment):
            units, verbs = exchange.reply()
            changed = fault is not None and on(verbs) and fault.fits(units)
            replies += b"".join(fault.segments(units) if changed and fault else [unit.render() for unit in units])
    return replies


def requests_of(one: Requirement, protocol: str, *, each_key: bool = False) -> list[bytes]:
    """Return the requests of the calls; each_key: a request for each key of a get of several."""

    def request(name: str, arguments: list[Any]) -> bytes:
        if each_key and name == "get_multi":
            return b"".join(REQUESTS[protocol]("get", [key]) for key in arguments[0])
        return REQUESTS[protocol](name, arguments)

    first = login(one, protocol)
    return [*([first] if first else []), *(request(name, arguments) for name, *arguments in one.calls if arguments)]


@pytest.mark.parametrize("each_key", [False, True])
@pytest.mark.parametrize("protocol", REQUESTS)
def test_requests_may_be_split_at_each_byte(protocol: str, each_key: bool) -> None:
    seen: set[bytes] = set()  # many requirements have the same requests
    for one in (each for each in REQUIREMENTS if protocol in each.protocols):
        for number, request in enumerate(parts := requests_of(one, protocol, each_key=each_key)):
            if request in seen:
                continue
            seen.add(request)
            before, after = parts[:number], parts[number + 1 :]
            for cut in range(1, len(request)):
                sent(one, [*before, request[:cut], request[cut:], *after])
            sent(one, [*before, *(request[place : place + 1] for place in range(len(request))), *after])


KEYS = st.sampled_from(["first", "second", "number", "", "k" * 251, "a b"])
NUMBERS = st.sampled_from(["0", "1", "-1", "x", "", "9" * 20, "9" * 5000, "4294967296"])
NAMES = st.sampled_from(
    "get gets gat set cas incr decr delete touch mg ms md ma mn me quit stats flush_all hello".split()
)
FLAGS = st.sampled_from(
    ["q", "v", "c", "k", "b", "f", "t", "Cx", "C", "Fx", "F99999999999", "Dx", "Jx", "N0", "MD", "Oab"]
)
LINES = st.builds(
    lambda *words: (" ".join(words) + "\r\n").encode(),
    NAMES, KEYS, NUMBERS, NUMBERS | FLAGS, NUMBERS | FLAGS, NUMBERS | FLAGS | st.just("noreply"),
)  # fmt: skip
FRAMES = st.builds(
    lambda opcode, lengths, vbucket, cas, body: (
        HEADER.pack(0x80, opcode, lengths[0], lengths[1], 0, vbucket, len(body), b"abcd", cas) + body
    ),
    st.integers(0, 255),
    st.tuples(st.integers(0, 300), st.integers(0, 30)),
    st.integers(0, 65535),
    st.integers(0, 2**64 - 1),
    st.binary(max_size=40) | st.just(b"first") | st.just(bytes(20) + b"number"),
)


@given(
    one=st.sampled_from(REQUIREMENTS),
    segments=st.lists(LINES | FRAMES | st.binary(max_size=30) | st.just(b"9" * 30 + b"\r\n"), min_size=1, max_size=8),
)
def test_bytes_of_any_kind_raise_nothing(one: Requirement, segments: list[bytes]) -> None:
    sent(one, segments)
    sent(one, [b"".join(segments)])
