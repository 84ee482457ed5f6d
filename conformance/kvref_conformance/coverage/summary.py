"""What was exercised, as the section of report.jsonl and as the closing lines of a run."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from kvref_conformance.coverage.combinations import met, possible
from kvref_conformance.coverage.configuration import PARAMETERS, exclusions
from kvref_conformance.coverage.connection_state import (
    BATCH_STATES,
    BOUND,
    DEFAULT,
    FAILED,
    MAPPING_STATES,
    NO_BATCH,
    NO_MAPPINGS,
    SWITCHED,
)
from kvref_conformance.coverage.key_shapes import ABOUT, sensible
from kvref_conformance.wire.verbs import BINARY, OTHER, OTHER_BINARY, VERBS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvref_conformance.coverage.collect import Exercised
    from kvref_conformance.coverage.configuration import Level
    from kvref_conformance.wire.verbs import Verb


def as_json(exercised: Exercised) -> dict[str, Any]:
    """Return the section as plain JSON, empty where nothing was sent.

    Counts of `key_shapes` and `states` are of every request; `exercised` and `missing` are about the cells of
    `possible`, which make sense for the endpoint. A request of several keys counts for the shape of each.
    """
    if not exercised.requests:
        return {}
    return {
        "requests": exercised.requests,
        "key_shapes": _key_shapes(exercised),
        "states": _states(exercised),
        "settings": _settings(exercised) if exercised.naming.supported else None,
    }


def closing_lines(section: dict[str, Any]) -> list[str]:
    """Return the section in a line or two for a terminal; none where it is empty."""
    if not section:
        return []
    shapes, states, settings = section["key_shapes"], section["states"], section["settings"]
    lines = [
        f"exercised: {shapes['exercised']} of {shapes['possible']} verbs x key shapes, "
        f"{states['exercised']} of {states['possible']} verbs x mapping x batch states"
    ]
    if settings is not None:
        pairs, triples = (_share(settings[name]) for name in ("pairs", "triples"))
        lines.append(
            f"exercised: {settings['configurations']} configurations, pairs of settings {pairs}, triples {triples}"
        )
    return lines


def _share(counted: dict[str, Any]) -> str:
    share = 100 * counted["exercised"] // counted["possible"]
    return f"{counted['exercised']} of {counted['possible']} ({share} %)"


def _expected(exercised: Exercised) -> list[Verb]:
    """Return the verbs that the endpoint has."""
    names = {OTHER, OTHER_BINARY} | (set() if exercised.naming.supported else {"bind"})
    beyond = exercised.profile.flag("verbs.beyond_plugin")
    return [verb for verb in VERBS.values() if verb.name not in names and (beyond or not verb.beyond)]


def _key_shapes(exercised: Exercised) -> dict[str, Any]:
    counts = {name: {s: n for s in ABOUT if (n := exercised.cells[name, s])} for name in VERBS}
    wanted = {verb.name: sensible(verb, exercised.naming) for verb in _expected(exercised)}
    missing = {name: [shape for shape in shapes if shape not in counts[name]] for name, shapes in wanted.items()}
    return {
        **_sums(sum(map(len, wanted.values())), sum(map(len, missing.values()))),
        "shapes": ABOUT,
        "counts": {name: shapes for name, shapes in counts.items() if shapes or name in wanted},
        "missing": {name: shapes for name, shapes in missing.items() if shapes},
    }


def _states(exercised: Exercised) -> dict[str, Any]:
    supported = exercised.naming.supported
    batches = list(BATCH_STATES) if supported else [NO_BATCH]
    wanted = {verb.name: _mappings(verb, supported=supported) for verb in _expected(exercised) if verb.stateful}
    missing: dict[str, dict[str, list[str]]] = {}
    for name, mappings in wanted.items():
        left = {m: [b for b in batches if not exercised.states[name, m, b]] for m in mappings}
        missing[name] = {mapping: states for mapping, states in left.items() if states}
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for (name, mapping, batch), number in sorted(exercised.states.items()):
        counts.setdefault(name, {}).setdefault(mapping, {})[batch] = number
    number = sum(len(states) for left in missing.values() for states in left.values())
    return {
        **_sums(sum(map(len, wanted.values())) * len(batches), number),
        "mappings": MAPPING_STATES,
        "batches": BATCH_STATES,
        "counts": counts,
        "missing": _together(missing),
    }


def _mappings(verb: Verb, *, supported: bool) -> tuple[str, ...]:
    if not supported:
        return (NO_MAPPINGS,)
    # The binary protocol has no opcode for bind.
    return (DEFAULT, SWITCHED) if verb.name.startswith(BINARY) else (DEFAULT, BOUND, SWITCHED, FAILED)


def _together(missing: dict[str, dict[str, list[str]]]) -> list[dict[str, Any]]:
    """Return verbs that lack the same states as one entry."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name, states in missing.items():
        if states:
            alike[repr(states)].append(name)
    return [{"verbs": names, "states": missing[names[0]]} for names in alike.values()]


def _settings(exercised: Exercised) -> dict[str, Any]:
    excluded = exclusions(exercised.profile)
    found: dict[str, Any] = {
        "parameters": {name: list(levels) for name, levels in PARAMETERS.items()},
        "configurations": len(exercised.rows),
    }
    for name, size in (("pairs", 2), ("triples", 3)):
        wanted, seen = possible(PARAMETERS, excluded, size), met(exercised.rows, size)
        left = [each for each in wanted if each not in seen]
        found[name] = _sums(len(wanted), len(left))
        if size == 2:
            found[name]["missing"] = [_worded(each) for each in left]
    found["excluded"] = [{"levels": _worded(sorted(levels)), "reason": why} for levels, why in excluded.items()]
    return found


def _sums(possible_: int, missing: int) -> dict[str, Any]:
    return {"exercised": possible_ - missing, "possible": possible_}


def _worded(levels: Iterable[Level]) -> list[str]:
    return [f"{name}: {level}" for name, level in levels]
