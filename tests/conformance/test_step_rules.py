"""A failure of a generated conversation names the requirements of its last step."""

from __future__ import annotations

import pytest

from kvref import profiles
from kvref_conformance.judging.step_rules import MOST, rules_of


@pytest.mark.parametrize(
    ("request_", "allowed", "stated"),
    [
        ("incr k x\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n", "KV-ARITH-012"),
        ("incr k 1\r\n", "NOT_FOUND\r\n", "KV-ARITH-007"),
        ("mg k v\r\n", "EN\r\n", "KV-MG-003"),
        ("cas k 0 0 1 5\r\nx\r\n", "EXISTS\r\n", "KV-CORE-011"),
        ("replace k 0 0 1\r\nx\r\n", "NOT_STORED\r\n", "KV-CORE-005"),
        ("bind x\r\n", "NOT_FOUND\r\n", "KV-BIND-003"),
    ],
)
def test_the_requirements_of_a_step_are_found(request_: str, allowed: str, stated: str) -> None:
    found = rules_of(request_, (allowed,), profiles.load("kvref"))
    assert stated in found
    assert len(found) <= MOST
    assert not {name for name in found if name.startswith(("KV-SEQ-", "KV-HIST-"))}
