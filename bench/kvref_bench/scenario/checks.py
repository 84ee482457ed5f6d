"""What may stand in a scenario file: each key with a test of its value and the words for what is possible."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args

from kvref.errors import choices
from kvref_bench.errors import BenchError
from kvref_bench.load.work import Distribution, Route
from kvref_bench.workload.commands import OUTCOMES
from kvref_bench.workload.keys import LONGEST, SHORTEST

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Check:
    """A test of one value.

    many: it takes a list, for which a value set by hand may stand alone.
    """

    possible: str
    fits: Callable[[Any], bool]
    many: bool = False


Tree = dict[str, "Check | Tree"]


def whole(low: int, high: int) -> Check:
    """Take whole numbers from low to high."""
    return Check(
        f"a whole number from {low} to {high}",
        lambda given: isinstance(given, int) and not isinstance(given, bool) and low <= given <= high,
    )


def number(low: float, high: float) -> Check:
    """Take numbers from low to high."""
    return Check(
        f"a number from {low:g} to {high:g}",
        lambda given: isinstance(given, (int, float)) and not isinstance(given, bool) and low <= given <= high,
    )


def text(pattern: str, possible: str) -> Check:
    """Take texts that a regular expression matches as a whole."""
    return Check(possible, lambda given: isinstance(given, str) and re.fullmatch(pattern, given, re.DOTALL) is not None)


def choice(*words: str) -> Check:
    """Take one of a few words."""
    return Check(f"one of {', '.join(words)}", lambda given: given in words)


def several(each: Check, least: int = 1) -> Check:
    """Take lists without a value twice."""
    return Check(
        f"a list of different values, each {each.possible}",
        lambda given: (
            isinstance(given, list)
            and len(given) >= least
            and all(map(each.fits, given))
            and len(set(given)) == len(given)
        ),
        many=True,
    )


def table(name: Check, each: Check) -> Check:
    """Take tables of any names that fit."""
    return Check(
        f"a table: names {name.possible}; values {each.possible}",
        lambda given: isinstance(given, dict) and all(map(name.fits, given)) and all(map(each.fits, given.values())),
        many=each.many,
    )


def _sizes(given: Any) -> bool:
    size = whole(0, 1 << 20).fits
    if isinstance(given, list):
        return len(given) == 2 and all(map(size, given)) and given[0] <= given[1]
    return given == ETC or size(given)


ETC: Final = "facebook-etc"
_YES: Final = Check("true or false", lambda given: isinstance(given, bool))
_SENTENCE: Final = text(r"\S.*", "a text")
_NAME: Final = text(r"[A-Za-z_][A-Za-z0-9_]*", "a name of letters, digits and _")
_MAPPING: Final = text(r"[A-Za-z0-9_]{2,64}", "a name of 2 to 64 letters, digits and _: `get @@x` finds no shorter one")
_VERB: Final = choice(*OUTCOMES)
_FILE: Final = text(r".+", "the path of a file with one key in each line")
_SESSIONS: Final = several(whole(1, 100_000))
_SETTINGS: Final = table(
    text(r"[a-z][a-z0-9_]*", "of the server's variables, as in SHOW VARIABLES"), several(whole(-(2**63), 2**64 - 1))
)

TABLE: Final[Tree] = {
    "name": _NAME,
    "mapping": _MAPPING,
    "extras": _YES,
    "load": choice("sql", "wire"),
    "procedures": table(_NAME, _SENTENCE),
    "keys": {
        "count": whole(1, 2**31 - 2),
        "shape": choice("int", "text"),
        "length": whole(SHORTEST, LONGEST),
        "file": _FILE,
        "distribution": choice("file", "trace"),
    },
    "values": {
        "sizes": Check(f"a number of bytes up to 1048576, [smallest, largest], or {ETC!r}", _sizes),
        "limit": whole(1, 1 << 20),
        "form": choice("text", "number"),
    },
}
WORK: Final[Tree] = {
    "protocol": choice("text", "binary", "mysql"),
    "route": choice(*get_args(Route)),
    "delimiter": text(r"[!-~]{1,64}", "1 to 64 printable characters"),
    "verbs": table(_VERB, number(1e-9, 1e9)),
    "statements": table(_VERB, text(r".*:key\b.*", "SQL with :key in it")),
    "depth": whole(1, 4096),
    "multiget": whole(1, 4096),
    "operations": whole(1, 10**12),
    "pool": whole(1, 10**8),
    "driver": _SENTENCE,
    "keys": {
        "distribution": choice(*get_args(Distribution)),
        "parameters": table(Check("of the distribution", lambda given: isinstance(given, str)), number(1e-9, 100)),
        "file": _FILE,
        "missing": number(0, 1),
        "apart": _YES,
    },
}
SERIES: Final[Tree] = {
    "name": text(r"[^\n/]{1,60}", "a text of up to 60 characters"),
    "over": choice("memcached", "sql"),
    "needs_table": _YES,
    "sessions": _SESSIONS,
    "settings": _SETTINGS,
    **WORK,
}
ABOUT: Final[Tree] = {
    "version": whole(1, 10**6),
    "title": _SENTENCE,
    "question": _SENTENCE,
    "source": _SENTENCE,
    "kind": choice("load", "lag"),
}
AT_A_SCALE: Final[Tree] = {
    "only": several(_SENTENCE),
    "sessions": _SESSIONS,
    "settings": _SETTINGS,
    "fresh": _YES,
    "processes": whole(1, 1024),
    "warmup": number(0, 3600),
    "measure": number(0.01, 86400),
    "cooldown": number(0, 3600),
    "repetitions": whole(1, 1000),
    "rates": several(number(0.001, 10), least=0),
    "hits": Check("a number from 0 to 1, or 'unknown'", lambda given: given == "unknown" or number(0, 1).fits(given)),
    "trials": whole(0, 100_000),
    "table": TABLE,
    "work": WORK,
}


def check(given: object, tree: Tree, where: str, path: str = "") -> None:
    """Compare what should be a table of a scenario file with what may stand in it.

    where: the file, for the error. path: of the table, with a point behind it.

    Raises:
        BenchError: a key that is not known, or a value that is not possible.
    """
    if not isinstance(given, dict):
        raise BenchError(
            f"{where}: {path.rstrip('.: ')} = {given!r}: it must be a table with {', '.join(sorted(tree))}"
        )
    for key, value in given.items():
        expected = tree.get(key)
        if expected is None:
            raise BenchError(f"{where}: {path}{key}: there is no such key{choices(str(key), sorted(tree))}")
        if isinstance(expected, Check):
            if not expected.fits(value):
                raise BenchError(f"{where}: {path}{key} = {value!r}: it must be {expected.possible}")
        else:
            check(value, expected, where, f"{path}{key}.")
