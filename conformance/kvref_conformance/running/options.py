"""The options of a run, declared once: for pytest here, for `kvref conform` and `kvref replay` as options of click."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kvref.specification import conformance_levels
from kvref_conformance.judging.budget import DEFAULT_FAILURES, DEFAULT_HANGS, DEFAULT_SECONDS
from kvref_conformance.judging.verdict import DEMANDS
from kvref_conformance.triage.repeat import DEFAULT_TIMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

DEFAULT_EXAMPLES: Final = 60
DEFAULT_HISTORIES: Final = 15
DEFAULT_SEED: Final = 20120929  # the day the mapping was published
DEFAULT_LEVEL: Final = "must"


@dataclass(frozen=True, slots=True)
class Option:
    """An option.

    Args:
        name: with hyphens, without the two at its beginning.
        help: as `kvref conform --help` has it.
        metavar: of the value; empty for a flag.
        default: None or empty: none.
        least: minimum of a number.
        choices: of a word.
        several: it may be repeated.
        shows_default: its default is shown in the help.
    """

    name: str
    help: str
    metavar: str = ""
    default: Any = None
    least: int | None = None
    choices: Sequence[str] = ()
    several: bool = False
    shows_default: bool = False

    @property
    def kind(self) -> type:
        """Return the type of the value."""
        return int if self.name == "seed" else str if self.default is None else type(self.default)

    @property
    def text(self) -> str:
        """Return the help with the default."""
        shown = f"{self.default:g}" if isinstance(self.default, float) else self.default
        return f"{self.help}  [default: {shown}]" if self.shows_default else self.help


OPTIONS: Final = (
    Option(
        "sql",
        "Database of the endpoint: mysql://user@host:port/, mysql://user@host/?unix_socket=PATH or sqlite:///PATH.",
        "DSN",
    ),
    Option(
        "profile",
        "Profile to judge by; a kvref server started for the run uses it too. Default: detect it from the endpoint."
        " auto also prints the detected profile as a TOML file. If you pass such a FILE, the endpoint must match it.",
        "NAME|FILE",
    ),
    Option(
        "level",
        "Lowest requirement level that affects the exit code. Failures of lower levels are reported as non-strict.",
        "LEVEL",
        DEFAULT_LEVEL,
        choices=tuple(DEMANDS),
        shows_default=True,
    ),
    Option("chapter", "Run only this chapter of the suite. Repeatable.", "CHAPTER", several=True),
    Option(
        "conformance-level",
        "Run only the cases of this level of conformance and of the levels that it builds on. Repeatable.",
        "LEVEL",
        choices=conformance_levels.NAMES,
        several=True,
    ),
    Option(
        "only",
        "Run only cases whose ID or requirement matches; with --self-test, only matching mutants. Repeatable.",
        "GLOB",
        several=True,
    ),
    # pytest has a --last-failed of its own, which remembers tests and not endpoints.
    Option("last-broken", "Run only the cases that failed in the previous report in --report."),
    Option("dry-run", "Detect the profile of the endpoint, print it and list the cases, without running them."),
    Option("repeat", "Number of times to repeat a failed case.", "N", DEFAULT_TIMES, least=0, shows_default=True),
    Option(
        "time-limit",
        "Time limit of the run, in seconds. Remaining cases are reported as not-run; 0 disables.",
        "SECONDS",
        DEFAULT_SECONDS,
        least=0,
        shows_default=True,
    ),
    Option(
        "max-hangs",
        "Skip the rest of a chapter, as not-run, after N of its cases hang; 0 disables.",
        "N",
        DEFAULT_HANGS,
        least=0,
        shows_default=True,
    ),
    Option(
        "max-failures",
        "End the run after N cases fail. Remaining cases are reported as not-run; 0 disables.",
        "N",
        DEFAULT_FAILURES,
        least=0,
        shows_default=True,
    ),
    Option("allow-destructive", "Allow flush_all, which deletes the items of the endpoint."),
    Option(
        "reload",
        "Shell command that makes the endpoint reload its configuration tables. Exit code 3 means that the endpoint"
        " rejects this configuration.",
        "COMMAND",
    ),
    Option(
        "restart",
        "Shell command that restarts the endpoint on the same data. Settings are appended as NAME=VALUE arguments.",
        "COMMAND",
    ),
    Option("deviations", "TOML file of known deviations of your endpoint.", "FILE"),
    Option("update-deviations", "Rewrite the --deviations file so that the same run conforms."),
    Option("report", "Directory for the report.", "DIR"),
    Option("examples", "Number of generated conversations per case.", "N", DEFAULT_EXAMPLES, least=1),
    Option(
        "histories",
        "Number of generated concurrent histories per group of settings.",
        "N",
        DEFAULT_HISTORIES,
        least=1,
    ),
    Option("seed", "Seed of the generated conversations.", "S", DEFAULT_SEED),
    Option("database", "Directory that keeps failed generated examples; later runs try them first.", "DIR"),
)
# What only pytest has: the command knows the endpoint, and `kvref replay` the file.
OWN: Final = (
    Option("endpoint", "Endpoint to judge.", "HOST:PORT|unix:PATH"),
    Option("replay", "Run only the case of a replay file.", "FILE"),
    Option(
        "again",
        "Words with which `kvref replay FILE` reaches the endpoint after the run. Default: its address.",
        "WORDS",
    ),
)


def declare(parser: pytest.Parser) -> None:
    """Declare them to pytest."""
    add = parser.getgroup("kvref", "conformance of memcached over SQL tables").addoption
    for each in (*OWN, *OPTIONS):
        flag, text = f"--{each.name}", each.text.replace("%", "%%")
        if not each.metavar:
            add(flag, action="store_true", help=text)
        elif each.several:
            add(flag, action="append", default=[], choices=each.choices or None, metavar=each.metavar, help=text)
        else:
            choices, kind = each.choices or None, each.kind
            add(flag, type=kind, default=each.default, choices=choices, metavar=each.metavar, help=text)
