"""What set-ups become: a JSON document, and the tables of its ratios in Markdown."""

from __future__ import annotations

import statistics
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from kvref_bench.pairs import document as pairs_document
from kvref_bench.runs import machine
from kvref_bench.setups.entries import DEPTH, SESSIONS, STORES, VERBS, left_out, setups
from kvref_bench.setups.measure import KVREF
from kvref_bench.turns import cpus, report

if TYPE_CHECKING:
    from kvref_bench.pairs.measure import Settings
    from kvref_bench.setups.measure import Measured

SIDES: Final = ("setup", "demo")
HEAD: Final = (
    "set-up", "configuration", "get, µs", "ratio", "range", "set, µs", "ratio", "range", "limit", "within",
)  # fmt: skip

Document = dict[str, Any]


def begin(settings: Settings) -> Document:
    """Make the document of a run without set-ups."""
    return pairs_document.begin(settings, setups=[], left_out=left_out())


def add(document: Document, measured: Measured) -> None:
    """Put a set-up into a document."""
    setup = measured.setup
    named = {"name": setup.name, "store": measured.store}
    if measured.skipped:
        document["skipped"].append({**named, "reason": machine.public(measured.skipped)})
        return
    pairs = [
        {verb: dict(zip(SIDES, map(asdict, each[verb]), strict=True)) for verb in VERBS} for each in measured.pairs
    ]
    document["setups"].append({**named, "what": setup.what, "limit": setup.limit, "pairs": pairs})


def table(document: Document) -> str:
    """Return a table for each store in Markdown, and below them what was not measured."""
    parts = []
    for store, title in STORES.items():
        lines = [_line(each) for each in document["setups"] if each["store"] == store]
        if lines:
            parts.append(f"Over {title}:\n\n{report.grid(HEAD, lines)}")
    missing = [f"{each['name']} ({each['store']}): {each['reason'].splitlines()[0]}" for each in document["skipped"]]
    unmeasured = [*missing, *(f"`{name}`: {reason}" for name, reason in document["left_out"].items())]
    return "\n".join([*parts, _how(document), "\nNot measured:\n", *(f"* {each}" for each in unmeasured)]) + "\n"


def absent(document: Document) -> str:
    """Return a sentence that names the set-ups of today that a document does not have; "" if it has all."""
    there = {(each["name"], each["store"]) for key in ("setups", "skipped") for each in document[key]}
    names = [f"{each.name} ({store})" for each in setups() for store in each.stores if (each.name, store) not in there]
    return f"Not measured yet: {', '.join(names)}.\n" if names else ""


def _line(setup: Document) -> list[str]:
    cells, within = [], True
    for verb in VERBS:
        ours, theirs = ([each[verb][side]["server"][KVREF] for each in setup["pairs"]] for side in SIDES)
        ratio = report.spread([our / their for our, their in zip(ours, theirs, strict=True)])
        cells += [
            f"{statistics.median(ours):.1f}", f"{ratio['median']:.2f}", f"{ratio['min']:.2f} to {ratio['max']:.2f}",
        ]  # fmt: skip
        within &= ratio["median"] <= setup["limit"]
    return [setup["name"], setup["what"], *cells, f"{setup['limit']:g}", "yes" if within else "no"]


def _how(document: Document) -> str:
    settings = document["settings"]
    pairs = (pair for each in document["setups"] for pair in each["pairs"])
    loads = [done["load"] for pair in pairs for verb in VERBS for done in pair[verb].values()]
    load = f" Load average: {min(loads):.1f} to {max(loads):.1f}." if loads else ""
    return (
        f"{document['kvref']}, Python {document['runtime']['python']}, measured {document['made'][:10]};"
        f" {document['machine']['cpu_model']}, servers on processor {cpus.words(settings['server_cpus'])}, generator on"
        f" {cpus.words(settings['client_cpus'])}. CPU time of kvref for each operation, without that of the database"
        f" server; {settings['pairs']} pairs of {settings['seconds']:g} s in alternating order, {SESSIONS} connections"
        f" with {DEPTH} commands in flight, {settings['keys']:,} keys, values of {settings['value_bytes']} bytes."
        " *ratio* is the median of the ratios to the demo table within the pairs, *range* the smallest and the largest"
        f" one.{load}"
    )
