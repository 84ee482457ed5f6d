"""table_map_delimiter: each case needs the endpoint to read its configuration again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Setup, case, say
from kvref_conformance.cases.phrases import misses, shows

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Send

COLON, ARROW, EMPTY, NO_ROW, AT, MARK, TILDES = (Setup(text) for text in (":", "->", "", None, "@@", "@>", "~" * 40))
CAPITALS = Setup(None, others=(("TABLE_MAP_DELIMITER", ":"),))
BOUND = {n: shows("{k}", str(n)) for n in (1, 2)}


def everywhere() -> tuple[Send, ...]:
    """Store {k} as 2 in {m2} and as 1 in {m1}, without any delimiter; the connection ends bound to {m1}."""
    return tuple(say(f"bind {{m{n}}}\r\nset {{k}} 0 0 1\r\n{n}\r\n", "SUCCEED\r\nSTORED\r\n") for n in (2, 1))


def reaches(word: str) -> Send:
    """Get a word that reaches {k} of {m2}."""
    return say(f"get {word}\r\n", f"VALUE {word} 0 1\r\n2\r\nEND\r\n")


def names_table(word: str) -> Send:
    """Get a switch word."""
    return say(f"get {word}\r\n", f"VALUE {word} 0 <number>\r\n<text>\r\nEND\r\n")


CASES = (
    case("colon", "KV-DELIM-001", *everywhere(), reaches("@@{m2}:{k}"), BOUND[2], setup=COLON),
    case(
        "colon-set",
        "KV-DELIM-001",
        *everywhere(),
        say("set @@{m2}:{k} 0 0 1\r\n2\r\n", "STORED\r\n"),
        BOUND[2],
        setup=COLON,
    ),
    case("colon-not-dot", "KV-DELIM-002", *everywhere(), misses("@@{m2}.{k}"), BOUND[1], setup=COLON),
    case(
        "colon-switch-words",
        "KV-DELIM-003",
        *everywhere(),
        names_table("@@{m2}:"),
        BOUND[2],
        names_table("@@{m1}"),
        BOUND[1],
        setup=COLON,
    ),
    case(
        "colon-in-the-key",
        "KV-DELIM-008",
        say("set @@{m2}:{k}:b.c 0 0 1\r\nx\r\n", "STORED\r\n"),
        say("get {k}:b.c\r\n", "VALUE {k}:b.c 0 1\r\nx\r\nEND\r\n"),
        setup=COLON,
    ),
    case("arrow", "KV-DELIM-004", *everywhere(), reaches("@@{m2}->{k}"), BOUND[2], setup=ARROW),
    case("arrow-switch-words", "KV-DELIM-003", *everywhere(), names_table("@@{m2}->"), BOUND[2], setup=ARROW),
    case("half-an-arrow", "KV-DELIM-005", *everywhere(), misses("@@{m2}-{k}"), BOUND[1], setup=ARROW),
    case("arrow-head", "KV-DELIM-005", *everywhere(), misses("@@{m2}>{k}"), BOUND[1], setup=ARROW),
    case("empty-means-dot", "KV-DELIM-006", *everywhere(), reaches("@@{m2}.{k}"), BOUND[2], setup=EMPTY),
    case("no-row-means-dot", "KV-DELIM-007", *everywhere(), reaches("@@{m2}.{k}"), BOUND[2], setup=NO_ROW),
    case("delimiter-between-name-and-key", "KV-DELIM-012", *everywhere(), reaches("@@{m2}.{k}"), misses("@@{m2}{k}")),
    case(
        "delimiter-of-40-bytes",
        "KV-DELIM-013",
        *everywhere(),
        reaches(f"@@{{m2}}{'~' * 32}{{k}}"),
        BOUND[2],
        setup=TILDES,
    ),
    case(
        "delimiter-in-capitals",
        "KV-DELIM-014",
        *everywhere(),
        reaches("@@{m2}.{k}"),
        misses("@@{m1}:{k}"),
        setup=CAPITALS,
    ),
    case("delimiter-of-at-signs", "KV-DELIM-015", *everywhere(), reaches("@@{m2}@@{k}"), BOUND[2], setup=AT),
    case("delimiter-like-a-range", "KV-DELIM-016", *everywhere(), reaches("@@{m2}@>{k}"), BOUND[2], setup=MARK),
)


def test_delimiter(case: Case, judge: Callable[[Case], None]) -> None:
    judge(case)
