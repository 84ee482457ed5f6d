"""Print the statements and branches that a coverage report has for each package, as a Markdown table."""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

import click

FIELDS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def package_of(file: str) -> str:
    """Return the package of a file, two levels deep: kvref/storage, kvref_bench/load."""
    parts = Path(file).with_suffix("").parts
    start = next(
        number
        for number, part in enumerate(parts)
        if part in {"kvref", "kvref_testbed", "kvref_conformance", "kvref_bench", "support"}
    )
    # A checkout that is itself called kvref comes before the package.
    start = max(number for number in range(start, len(parts)) if parts[number] == parts[start])
    return "/".join(parts[start : start + 2]) if len(parts) > start + 2 else parts[start]


def main(report: str) -> None:
    packages: dict[str, Counter[str]] = defaultdict(Counter)
    for file, found in json.loads(Path(report).read_text())["files"].items():
        packages[package_of(file)].update({field: found["summary"][field] for field in FIELDS})
    packages["all"] = sum(packages.values(), Counter())
    click.echo("| package | statements | run | branches | taken | coverage |\n|---|---|---|---|---|---|")
    for name in sorted(packages, key=lambda each: (each == "all", each)):
        statements, lines, branches, taken = (packages[name][field] for field in FIELDS)
        share = 100 * (lines + taken) / max(1, statements + branches)
        click.echo(f"| {name} | {statements} | {lines} | {branches} | {taken} | {share:.1f} % |")


if __name__ == "__main__":
    main(sys.argv[1])
