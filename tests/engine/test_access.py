"""Rights of a listener: each command declares what it needs, and one that declares nothing is refused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kvref.engine.access import NO_DETAIL, NO_FLUSH, ONE_MAPPING, READ_ONLY, UNLIMITED, Access
from kvref.protocol import commands as c
from kvref.protocol.replies import ClientError

READING = Access(read_only=True)
LIMITED = Access(("aaa",))
KEEPING = Access(flush=False)


@dataclass(slots=True)
class Undeclared:
    """A command that was added and declares no rights."""


@pytest.mark.parametrize(("access", "reply"), [(READING, READ_ONLY), (LIMITED, ONE_MAPPING), (KEEPING, NO_FLUSH)])
def test_a_command_that_declares_nothing_is_refused(access: Access, reply: ClientError) -> None:
    assert access.refusal(Undeclared()) == reply  # type: ignore[arg-type]
    assert UNLIMITED.refusal(Undeclared()) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("command", "access", "reply"),
    [
        (c.Get([b"k"], with_cas=False), READING, None),
        (c.Store("set", b"k", 0, 0, b"x"), READING, READ_ONLY),
        (c.Store("set", b"k", 0, 0, b"x"), LIMITED, None),
        (c.MetaGet(b"k", []), READING, None),
        (c.MetaGet(b"k", [b"T0"], exptime=0), READING, READ_ONLY),
        (c.MetaGet(b"k", [b"N0"], vivify=0), READING, READ_ONLY),
        (c.FlushAll(), READING, READ_ONLY),
        (c.FlushAll(), KEEPING, NO_FLUSH),
        (c.FlushAll(), LIMITED, None),
        (c.Stats([]), READING, None),
        (c.Stats([b"reset"]), READING, READ_ONLY),
        (c.Stats([b"reset"]), LIMITED, None),
        (c.Stats([b"detail", b"on"]), READING, READ_ONLY),
        (c.Stats([b"detail", b"dump"]), READING, None),
        (c.Stats([b"detail", b"dump"]), LIMITED, NO_DETAIL),
        (c.VBucket("get", b""), READING, None),
        (c.VBucket("set", b"", b"x"), READING, READ_ONLY),
        (c.Quit(), READING, None),
        (c.Foreign("HTTP"), READING, None),
        (c.Refused(b"ERROR"), Access(("aaa",), read_only=True, flush=False), None),
    ],
)
def test_rights(command: c.Command, access: Access, reply: ClientError | None) -> None:
    assert access.refusal(command) == reply
