"""The page README.md of this package: every mutant, how it is broken, and the requirement that must fail it."""

from __future__ import annotations

from kvref_testbed.mutants import GROUPS, MUTANTS, SLOW_PATH_ONLY, TOYS

HEAD = f"""\
# Mutants

Written by `python -m kvref_testbed.mutants > kvref_testbed/mutants/README.md`.

{len(MUTANTS)} servers, each with one broken rule. {len(TOYS)} of them are toy servers: they reply as if they had run a
command or applied a setting, and do nothing. `kvref conform --self-test` judges each mutant by the cases of its
requirement, of which at least one must fail, and the unbroken server by all of these cases, which must hold.
Each mutant runs twice: without a row cache, and on the default path, with the row cache and the fast paths.
`kvref spec ID` shows a requirement. `python -m kvref_testbed.mutants NAME serve --store sqlite:///FILE` starts a
mutant.
"""


def page() -> str:
    """Return the page as Markdown."""
    lines = [HEAD]
    for title, mutants in GROUPS.items():
        lines += [f"## {title.rstrip('.')}", "", "| mutant | how it is broken | requirement |", "|---|---|---|"]
        lines += [f"| `{each.name}` | {each.about} | {each.requirement} |" for each in mutants]
        lines.append("")
    lines += ["## Not tried on the default path", "", "| mutant | why no case can see it there |", "|---|---|"]
    lines += [f"| `{name}` | {why} |" for name, why in SLOW_PATH_ONLY.items()]
    return "\n".join([*lines, ""])
