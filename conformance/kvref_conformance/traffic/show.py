"""The result of a replay for people and for programs: differences by requirement, the most frequent first."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

from kvref.errors import printable
from kvref.specification import requirements
from kvref_conformance.corpus.show import answer
from kvref_conformance.judging.conversation import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_conformance.traffic.replay import Cause, Result

FORMAT: Final = 1
MAX_CAUSES: Final = 20
UNSTATED: Final = "no requirement states this reply"


def by_requirements(result: Result) -> list[tuple[tuple[str, ...], list[Cause]]]:
    """Return the causes of differences by the requirements that they are about, the most frequent first."""
    groups: defaultdict[tuple[str, ...], list[Cause]] = defaultdict(list)
    totals: Counter[tuple[str, ...]] = Counter()
    for cause, count in result.counts.most_common():
        groups[cause.requirements()].append(cause)
        totals[cause.requirements()] += count
    return [(names, groups[names]) for names, _ in totals.most_common()]


def text(result: Result) -> str:
    """Return differences and sums as text."""
    return "\n".join(_lines(result))


def _lines(result: Result) -> Iterator[str]:
    for names, causes in by_requirements(result)[:MAX_CAUSES]:
        yield ", ".join(names) or UNSTATED
        if names:
            yield f"  {requirements.load()[names[0]].statement}"
        for cause in causes:
            received = cause.observed if cause.observed != cause.recorded else f"another {cause.observed}"
            kinds = f"receives {printable(received)} instead of {printable(cause.recorded)}"
            yield f"  {result.counts[cause]}: `{printable(cause.verb)}` {kinds}"
            example = result.examples[cause][0]
            yield f"    {example.where}: {shown(example.sent)}"
            yield f"      recorded  {answer(example.recorded)}"
            yield f"      observed  {answer(example.observed)}"
        yield ""
    rest = len(by_requirements(result)) - MAX_CAUSES
    if rest > 0:
        yield f"{rest} more groups are in the JSON file"
    yield summary(result)


def summary(result: Result) -> str:
    """Return the sums in one line."""
    parts = [f"{result.commands} commands: {result.same} same, {result.counts.total()} differ"]
    left = {
        "depend on items stored before the recording": result.earlier,
        "depend on the order of simultaneous commands": result.concurrent,
        "have a masked reply": result.masked,
        "are beyond the model": result.beyond,
    }
    return ", ".join([*parts, *(f"{count} {what}" for what, count in left.items() if count)])


def as_json(result: Result) -> dict[str, Any]:
    """Return the result for a JSON file."""
    return {
        "format": FORMAT,
        "commands": result.commands,
        "same": result.same,
        "differ": result.counts.total(),
        "earlier": result.earlier,
        "concurrent": result.concurrent,
        "masked": result.masked,
        "beyond": result.beyond,
        "groups": [
            {"requirements": list(names), "causes": [_cause(result, cause) for cause in causes]}
            for names, causes in by_requirements(result)
        ],
    }


def _cause(result: Result, cause: Cause) -> dict[str, Any]:
    return {
        "verb": cause.verb,
        "recorded": cause.recorded,
        "observed": cause.observed,
        "count": result.counts[cause],
        "examples": [
            {"where": each.where, "sent": each.sent, "recorded": each.recorded, "observed": each.observed}
            for each in result.examples[cause]
        ],
    }
