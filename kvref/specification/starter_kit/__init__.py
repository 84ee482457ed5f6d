"""The starter kit of an implementation: the files that `kvref implement` writes."""

from __future__ import annotations

import json
from functools import cmp_to_key
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from kvref import collations
from kvref.specification import conformance_levels, normative

if TYPE_CHECKING:
    from collections.abc import Mapping

SCRIPTS: Final = ("reload.sh", "restart.sh")
SCHEMAS: Final = {
    "SQLite": "schema/sqlite.sql",
    "MySQL and MariaDB": "schema/mysql.sql",
    "Table for a cache, SQLite": "schema/cache-sqlite.sql",
    "Table for a cache, MySQL and MariaDB": "schema/cache-mysql.sql",
}
# Collations of the vectors, and texts that differ in case, accents, width, blanks at the end and order.
COLLATIONS: Final = (
    "utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_unicode_ci", "utf8mb4_0900_ai_ci", "utf8mb4_0900_as_ci",
    "utf8mb4_0900_as_cs", "utf8mb4_0900_bin", "latin1_swedish_ci", "latin1_bin",
)  # fmt: skip
TEXTS: Final = (
    "", "a", "A", "a ", "aa", "\u00e4", "\u00c4", "ae", "b", "B", "z", "Z", "\u00df", "ss", "o", "\u00f6", "1", "10",
    "2", "_", "-", "\u00e5", "\u00f8",
)  # fmt: skip


def starter_files(profile: str) -> Mapping[str, str]:
    """Return the files of the kit by their path."""
    folder = files(__package__)
    made = {
        SCHEMAS[each["title"]]: "".join(map(normative.script, each["files"]))
        for each in normative.table("data_model")["scripts"]
    }
    for name in ("README.md", "ci.yml", *SCRIPTS):
        made[name] = folder.joinpath(name).read_text(encoding="utf-8").replace("PROFILE", profile)
    levels = ["| | level | what it has | builds on |", "|---|---|---|---|"]
    for number, each in enumerate(conformance_levels.load().values(), 1):
        levels.append(f"| {number} | `{each.name}` | {each.about} | {', '.join(each.builds_on) or 'none'} |")
    made["README.md"] = made["README.md"].replace("LEVELS", "\n".join(levels))
    made["collations.json"] = _vectors()
    return made


def _vectors() -> str:
    """Return the order of TEXTS in each collation as JSON: groups of equal texts, each group after the one before."""
    made = {}
    for name in COLLATIONS:
        compare = collations.order(collations.COLLATIONS[name]).compare
        texts = sorted(TEXTS, key=cmp_to_key(compare))
        groups = [[texts[0]]]
        for one, other in pairwise(texts):
            if compare(one, other) == 0:
                groups[-1].append(other)
            else:
                groups.append([other])
        made[name] = groups
    about = "Texts in ascending order by collation; the texts of a group are equal."
    return json.dumps({"about": about, "collations": made}, indent=1) + "\n"
