"""The options of a run, as pytest declares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref.specification import conformance_levels
from kvref_conformance.budget import DEFAULT_FAILURES, DEFAULT_HANGS, DEFAULT_SECONDS
from kvref_conformance.triage.repeat import DEFAULT_TIMES
from kvref_conformance.verdict import DEMANDS

if TYPE_CHECKING:
    import pytest

DEFAULT_EXAMPLES: Final = 60
DEFAULT_HISTORIES: Final = 15
DEFAULT_SEED: Final = 20120929  # the day the mapping was published
DEFAULT_LEVEL: Final = "must"


def declare(parser: pytest.Parser) -> None:
    """Declare them."""
    group = parser.getgroup("kvref", "conformance of memcached over SQL tables")
    add = group.addoption
    add("--endpoint", metavar="HOST:PORT|unix:PATH", help="endpoint to judge")
    add("--sql", metavar="DSN", help="database of the endpoint: mysql://user@host:port/ or sqlite:///PATH")
    add(
        "--profile",
        metavar="NAME",
        help="profile to judge by, a FILE.toml that the endpoint must match, or auto: detect the profile and print it",
    )
    add(
        "--level",
        choices=tuple(DEMANDS),
        default=DEFAULT_LEVEL,
        help="lowest requirement level that affects the exit code (default: %(default)s)",
    )
    add("--chapter", metavar="CHAPTER", action="append", default=[], help="run only this chapter of the suite")
    add(
        "--conformance-level",
        choices=conformance_levels.NAMES,
        action="append",
        default=[],
        help="run only the cases of this level of conformance and of the levels that it builds on",
    )
    add("--only", metavar="GLOB", action="append", default=[], help="run only cases whose ID or requirement matches")
    # pytest has a --last-failed of its own, which remembers tests and not endpoints.
    add("--last-broken", action="store_true", help="run only the cases that failed in the previous report in --report")
    add(
        "--dry-run",
        action="store_true",
        help="detect the profile of the endpoint and list the cases, without running them",
    )
    add("--replay", metavar="FILE", help="run only the case of a replay file")
    add(
        "--repeat",
        metavar="N",
        type=int,
        default=DEFAULT_TIMES,
        help="number of times to repeat a failed case (default: %(default)s)",
    )
    add(
        "--time-limit",
        metavar="SECONDS",
        type=float,
        default=DEFAULT_SECONDS,
        help="time limit of the run, in seconds; remaining cases are reported as not-run; 0 disables (default:"
        " %(default)g)",
    )
    add(
        "--max-hangs",
        metavar="N",
        type=int,
        default=DEFAULT_HANGS,
        help="skip the rest of a chapter, as not-run, after N of its cases hang; 0 disables (default: %(default)s)",
    )
    add(
        "--max-failures",
        metavar="N",
        type=int,
        default=DEFAULT_FAILURES,
        help="end the run after N cases fail; remaining cases are reported as not-run; 0 disables (default:"
        " %(default)s)",
    )
    add(
        "--again",
        metavar="WORDS",
        help="words with which `kvref replay FILE` reaches the endpoint after the run (default: its address)",
    )
    add("--allow-destructive", action="store_true", help="allow flush_all, which deletes the items of the endpoint")
    add(
        "--reload",
        metavar="COMMAND",
        help="shell command that makes the endpoint reload its configuration tables; exit code 3: the endpoint"
        " rejects this configuration",
    )
    add(
        "--restart",
        metavar="COMMAND",
        help="shell command that restarts the endpoint; settings are appended as NAME=VALUE arguments",
    )
    add("--deviations", metavar="FILE", help="TOML file of known deviations of your endpoint")
    add("--update-deviations", action="store_true", help="rewrite the --deviations file so that the same run conforms")
    add("--report", metavar="DIR", help="directory for report.jsonl, report.html, report.md, profile.toml and replays")
    add(
        "--examples",
        metavar="N",
        type=int,
        default=DEFAULT_EXAMPLES,
        help="number of generated conversations (%(default)s)",
    )
    add(
        "--histories",
        metavar="N",
        type=int,
        default=DEFAULT_HISTORIES,
        help="number of generated concurrent histories per group of settings (%(default)s)",
    )
    add("--seed", metavar="S", type=int, default=DEFAULT_SEED, help="seed of the generated conversations (%(default)s)")
    add("--database", metavar="DIR", help="directory that keeps failed generated examples; later runs try them first")
