"""The options of a run, as pytest declares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.budget import DEFAULT_HANGS, DEFAULT_SECONDS
from kvref_conformance.repeat import DEFAULT_TIMES
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
    add("--endpoint", metavar="HOST:PORT|unix:PATH", help="the endpoint to judge")
    add("--sql", metavar="DSN", help="the database behind it: mysql://user@host:port/ or sqlite:///PATH")
    add("--profile", metavar="NAME", help="facts to judge it by, FILE.toml, or auto: show as a file what was found")
    add("--level", choices=tuple(DEMANDS), default=DEFAULT_LEVEL, help="what counts (default: %(default)s)")
    add("--only", metavar="GLOB", action="append", default=[], help="judge cases whose id or requirement fits")
    # pytest has a --last-failed of its own, which remembers tests and not endpoints.
    add("--last-broken", action="store_true", help="judge what the report in --report says is broken")
    add("--dry-run", action="store_true", help="ask the endpoint, say what would be judged, and end")
    add("--replay", metavar="FILE", help="judge the case of a replay file and nothing else")
    add(
        "--repeat",
        metavar="N",
        type=int,
        default=DEFAULT_TIMES,
        help="try a failure N times more (default: %(default)s)",
    )
    add(
        "--time-limit",
        metavar="SECONDS",
        type=float,
        default=DEFAULT_SECONDS,
        help="limit of the run, after which the remaining cases are not-run; 0 for none (default: %(default)g)",
    )
    add(
        "--max-hangs",
        metavar="N",
        type=int,
        default=DEFAULT_HANGS,
        help="after N cases of a chapter that hang, the rest of it is not-run; 0 tries all (default: %(default)s)",
    )
    add("--allow-destructive", action="store_true", help="flush_all may delete what the endpoint holds")
    add(
        "--reload",
        metavar="COMMAND",
        help="shell command that makes it read its configuration tables again; exit code 3: it cannot have this one",
    )
    add(
        "--restart",
        metavar="COMMAND",
        help="shell command that starts it again, with NAME=VALUE settings behind it",
    )
    add("--deviations", metavar="FILE", help="your own list of what it is known not to keep")
    add("--update-deviations", action="store_true", help="write that list anew, so that the same run conforms")
    add("--report", metavar="DIR", help="write report.jsonl, report.html, profile.toml and replays there")
    add(
        "--examples",
        metavar="N",
        type=int,
        default=DEFAULT_EXAMPLES,
        help="random conversations (%(default)s)",
    )
    add(
        "--histories",
        metavar="N",
        type=int,
        default=DEFAULT_HISTORIES,
        help="histories under each group of settings (%(default)s)",
    )
    add("--seed", metavar="S", type=int, default=DEFAULT_SEED, help="of the random conversations (%(default)s)")
