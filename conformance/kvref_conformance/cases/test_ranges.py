"""Range gets between two bounds; a range open at one end would show the rows of other cases too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.case import case, say, sql
from kvref_conformance.cases.phrases import shows, stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case, Say

# {k}a to {k}e hold A to E.
LETTERS: Final = tuple(stored(f"{{k}}{letter}", letter.upper()) for letter in "abcde")


def answers(words: str, letters: str) -> Say:
    """Get the words and want these rows, each under its own key."""
    rows = "".join(f"VALUE {{k}}{letter} 0 1\r\n{letter.upper()}\r\n" for letter in letters)
    return say(f"get {words}\r\n", f"{rows}END\r\n")


CASES = (
    case(
        "range-included", "KV-RANGE-001", *LETTERS, answers("@>={k}b@<={k}d", "bcd"), answers("@>={k}a@<={k}e", "abcde")
    ),
    case("range-one-row", "KV-RANGE-001", *LETTERS, answers("@>={k}c@<={k}c", "c")),
    case("range-left-out", "KV-RANGE-002", *LETTERS, answers("@>{k}b@<{k}d", "c"), answers("@>{k}a@<{k}e", "bcd")),
    case("range-mixed", "KV-RANGE-002", *LETTERS, answers("@>={k}b@<{k}d", "bc"), answers("@>{k}b@<={k}d", "cd")),
    case("range-order", "KV-RANGE-003", *LETTERS, answers("@<{k}d@>={k}b", "bc"), answers("@<={k}d@>{k}b", "cd")),
    case("range-empty", "KV-RANGE-004", *LETTERS, answers("@>{k}c@<{k}c", ""), answers("@>{k}d@<{k}b", "")),
    case("range-no-keys", "KV-RANGE-005", *LETTERS, answers("@>{k}bb@<{k}dd", "cd"), answers("@>{k}@<{k}c", "ab")),
    case(
        "range-gets",
        "KV-RANGE-006",
        *LETTERS,
        say(
            "gets @>={k}b@<={k}c\r\n",
            "VALUE {k}b 0 1 <number>\r\nB\r\nVALUE {k}c 0 1 <number>\r\nC\r\nEND\r\n",
        ),
    ),
    case(
        "range-word-as-key",
        "KV-RANGE-007",
        say("set @>{k} 0 0 1\r\n5\r\n", "STORED\r\n"),
        say("incr @>{k} 1\r\n", "6\r\n"),
        sql("SELECT c2 FROM {t1} WHERE c1 = '@>{k}'", ("6",)),
        say("delete @>{k}\r\n", "DELETED\r\n"),
    ),
    case("range-behind-a-key", "KV-RANGE-008", *LETTERS, answers("{k}a @>={k}d@<={k}e", "ade")),
    case("range-behind-a-miss", "KV-RANGE-008", *LETTERS, answers("{k}z @>={k}d@<={k}e", "de")),
    case("range-then-key", "KV-RANGE-009", *LETTERS, answers("@>={k}d@<={k}e {k}a", "dea")),
    case("range-then-range", "KV-RANGE-009", *LETTERS, answers("@>={k}d@<={k}e @>={k}a@<={k}b", "deab")),
    case(
        "range-mapped",
        "KV-RANGE-010",
        *(stored(f"@@{{m2}}.{{k}}{letter}", letter.upper()) for letter in "abc"),
        stored("@@{m1}.{k}b", "x"),
        answers("@@{m2}.@>={k}a@<={k}b", "ab"),
        shows("{k}c", "C"),
    ),
    case(
        "range-expired",
        "KV-RANGE-011",
        *LETTERS,
        say("set {k}b 0 1000000000 1\r\nB\r\n", "STORED\r\n"),
        answers("@>={k}a@<={k}d", "acd"),
    ),
    case(
        "range-of-sql",
        "KV-RANGE-012",
        *LETTERS,
        sql("DELETE FROM {t1} WHERE c1 = '{k}b'"),
        sql("UPDATE {t1} SET c2 = 'n' WHERE c1 = '{k}c'"),
        say("get @>={k}a@<={k}c\r\n", "VALUE {k}a 0 1\r\nA\r\nVALUE {k}c 0 1\r\nn\r\nEND\r\n"),
    ),
)


def test_ranges(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
