"""What an endpoint does to its users beyond an unusual answer: crashes, garbage, values cut or lost without a sign.

Rows of `defects.toml`. A crash is never sent by the suite: its row holds the shortest conversation that ends the
server. Any other defect names the case that shows it, or holds such a conversation where no case may.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from kvref import profiles
from kvref.errors import SuiteError
from kvref.specification import requirements

if TYPE_CHECKING:
    from collections.abc import Mapping

CRASH: Final = "crash"
# What a row is, and what that means for a reader.
KINDS: Final = {
    CRASH: "the server ends and every connection with it",
    "garbage": "bytes or numbers are answered or stored that no client set",
    "truncation": "a part of a key or value is dropped, and the write is acknowledged",
    "lost write": "a stored or acknowledged value is gone",
    "wrong row": "another row, key or table than the requested one",
    "wrong value": "another value than the requested one is stored, and the write is acknowledged",
}
FIELDS: Final = {"requirement", "profiles", "reason", "evidence"}
PROOFS: Final = {"case", "conversation"}


@dataclass(frozen=True, slots=True)
class Defect:
    """One row.

    Args:
        reason: what happens, in a sentence.
        case: the case that shows it; empty where a conversation does.
        conversation: steps (connection or `sql`, what is sent); the last one shows it.
    """

    kind: str
    requirement: str
    profiles: tuple[str, ...]
    reason: str
    evidence: tuple[str, ...]
    case: str = ""
    conversation: tuple[tuple[str, str], ...] = ()


@cache
def load() -> tuple[Defect, ...]:
    """Return the rows of all profiles; raises as `parse`."""
    return parse(files(__package__).joinpath("defects.toml").read_text(encoding="utf-8"))


def of(profile: str) -> tuple[Defect, ...]:
    """Return the rows of a profile, in the order of KINDS."""
    order = list(KINDS)
    return tuple(sorted((row for row in load() if profile in row.profiles), key=lambda row: order.index(row.kind)))


def parse(text: str) -> tuple[Defect, ...]:
    """Return the rows `[[crash]]` and `[[defect]]` of a TOML text. Raises SuiteError for the first fault."""
    table = requirements.toml_of("deviations/defects.toml", text)
    if unknown := table.keys() - {CRASH, "defect"}:
        raise SuiteError(f"deviations/defects.toml: unknown {', '.join(sorted(unknown))}")
    rows = [_row({"kind": CRASH, **entry}, proof={"conversation"}) for entry in table.get(CRASH, [])]
    return (*rows, *(_row(entry, PROOFS & entry.keys()) for entry in table.get("defect", [])))


def _row(entry: Mapping[str, Any], proof: set[str]) -> Defect:
    where = f"deviations/defects.toml, {entry.get('requirement')}"
    needed = {*FIELDS, "kind", *proof}
    if len(proof) != 1 or entry.keys() != needed:
        raise SuiteError(
            f"{where}: fields {sorted(needed ^ entry.keys())}: needed are a case or a conversation, and the rest"
        )
    if not all(entry.values()):
        raise SuiteError(f"{where}: a field is empty")
    if entry["kind"] not in KINDS:
        raise SuiteError(f"{where}: kind {entry['kind']!r} is none of {', '.join(KINDS)}")
    requirement = requirements.load().get(entry["requirement"])
    if requirement is None:
        raise SuiteError(f"{where}: no such requirement")
    for profile in entry["profiles"]:
        if profile not in profiles.names() or not requirement.applies_to(profile):
            raise SuiteError(f"{where}: the requirement does not apply to profile {profile}")
    requirements.check_evidence(where, entry["evidence"])
    steps = entry.get("conversation", [])
    if any(len(step) != 2 for step in steps):
        raise SuiteError(f"{where}: a conversation is a list of [connection or sql, what is sent]")
    lists = {"profiles": tuple(entry["profiles"]), "evidence": tuple(entry["evidence"])}
    return Defect(**{**entry, **lists, "conversation": tuple((on, sent) for on, sent in steps)})
