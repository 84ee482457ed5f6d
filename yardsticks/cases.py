"""The exported specification with its cases, `kvref spec --json`, as a digest of each part."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

_KEYS: Final = {"id", "name", "case"}
PROFILES: Final = ("kvref", "mysql-8.0", "mysql-5.6", "memcached")


def measure() -> dict[str, Any]:
    """Return the digest of each part of the export, by profile: `requirements/KV-MAP-001`, `cases/set-get`."""
    return {profile: _digests(profile) for profile in PROFILES}


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a line for each part that differs."""
    found = []
    for profile in sorted({*old, *new}):
        before, after = old.get(profile, {}), new.get(profile, {})
        for part in sorted({*before, *after}):
            if before.get(part) != after.get(part):
                how = "removed" if part not in after else "added" if part not in before else "changed"
                found.append(f"{profile}: {part}: {how}")
    return found


def _digests(profile: str) -> dict[str, str]:
    words = [sys.executable, "-m", "kvref", "spec", "--profile", profile, "--json", "-"]
    exported = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    del exported["catalogue"]  # a digest of the requirements, which are here one by one
    return dict(_parts("", exported))


def _parts(path: str, content: object) -> Iterator[tuple[str, str]]:
    """Generate path and digest of each named entry of nested lists, so that a difference names the smallest part."""
    nested = {}
    plain = content
    if isinstance(content, dict):
        nested = {key: value for key, value in content.items() if _is_list_of_entries(value)}
        plain = {key: value for key, value in content.items() if key not in nested}
    for key, entries in nested.items():
        for each in entries:
            yield from _parts(f"{path}{key}/{_name(each)}/", each)
    yield path.rstrip("/") or "head", _digest(plain)


def _is_list_of_entries(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, dict) and _KEYS & each.keys() for each in value)
    )


def _name(each: dict[str, Any]) -> str:
    return str(next(each[key] for key in ("id", "name", "case") if key in each))


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
