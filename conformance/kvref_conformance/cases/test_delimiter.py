"""table_map_delimiter: each case needs the endpoint to read its configuration again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Setup, case, send
from kvref_conformance.cases.phrases import hit, miss

if TYPE_CHECKING:
    from kvref_conformance.steps import Send

COLON, ARROW, EMPTY, NO_ROW, AT, MARK, TILDES = (Setup(text) for text in (":", "->", "", None, "@@", "@>", "~" * 40))
CAPITALS = Setup(None, others=(("TABLE_MAP_DELIMITER", ":"),))
BOUND = {n: hit("{k}", str(n)) for n in (1, 2)}


def store_in_both() -> tuple[Send, ...]:
    """Store {k} as 2 in {m2} and as 1 in {m1}, without any delimiter; the connection ends bound to {m1}."""
    return tuple(send(f"bind {{m{n}}}\r\nset {{k}} 0 0 1\r\n{n}\r\n", "SUCCEED\r\nSTORED\r\n") for n in (2, 1))


def other_mapping(word: str) -> Send:
    """Get a word that reaches {k} of {m2}."""
    return send(f"get {word}\r\n", f"VALUE {word} 0 1\r\n2\r\nEND\r\n")


def table_name(word: str) -> Send:
    """Get a switch word."""
    return send(f"get {word}\r\n", f"VALUE {word} 0 <number>\r\n<text>\r\nEND\r\n")


CASES = (
    case("colon", "KV-DELIM-001", *store_in_both(), other_mapping("@@{m2}:{k}"), BOUND[2], setup=COLON),
    case(
        "colon-set",
        "KV-DELIM-001",
        *store_in_both(),
        send("set @@{m2}:{k} 0 0 1\r\n2\r\n", "STORED\r\n"),
        BOUND[2],
        setup=COLON,
    ),
    case("colon-not-dot", "KV-DELIM-002", *store_in_both(), miss("@@{m2}.{k}"), BOUND[1], setup=COLON),
    case(
        "colon-switch-words",
        "KV-DELIM-003",
        *store_in_both(),
        table_name("@@{m2}:"),
        BOUND[2],
        table_name("@@{m1}"),
        BOUND[1],
        setup=COLON,
    ),
    case(
        "colon-in-the-key",
        "KV-DELIM-008",
        send("set @@{m2}:{k}:b.c 0 0 1\r\nx\r\n", "STORED\r\n"),
        send("get {k}:b.c\r\n", "VALUE {k}:b.c 0 1\r\nx\r\nEND\r\n"),
        setup=COLON,
    ),
    case("arrow", "KV-DELIM-004", *store_in_both(), other_mapping("@@{m2}->{k}"), BOUND[2], setup=ARROW),
    case("arrow-switch-words", "KV-DELIM-003", *store_in_both(), table_name("@@{m2}->"), BOUND[2], setup=ARROW),
    case("half-an-arrow", "KV-DELIM-005", *store_in_both(), miss("@@{m2}-{k}"), BOUND[1], setup=ARROW),
    case("arrow-head", "KV-DELIM-005", *store_in_both(), miss("@@{m2}>{k}"), BOUND[1], setup=ARROW),
    case("empty-means-dot", "KV-DELIM-006", *store_in_both(), other_mapping("@@{m2}.{k}"), BOUND[2], setup=EMPTY),
    case("no-row-means-dot", "KV-DELIM-007", *store_in_both(), other_mapping("@@{m2}.{k}"), BOUND[2], setup=NO_ROW),
    case(
        "delimiter-between-name-and-key",
        "KV-DELIM-012",
        *store_in_both(),
        other_mapping("@@{m2}.{k}"),
        miss("@@{m2}{k}"),
    ),
    case(
        "delimiter-of-40-bytes",
        "KV-DELIM-013",
        *store_in_both(),
        other_mapping(f"@@{{m2}}{'~' * 32}{{k}}"),
        BOUND[2],
        setup=TILDES,
    ),
    case(
        "delimiter-in-capitals",
        "KV-DELIM-014",
        *store_in_both(),
        other_mapping("@@{m2}.{k}"),
        miss("@@{m1}:{k}"),
        setup=CAPITALS,
    ),
    case("delimiter-of-at-signs", "KV-DELIM-015", *store_in_both(), other_mapping("@@{m2}@@{k}"), BOUND[2], setup=AT),
    case(
        "delimiter-like-a-range", "KV-DELIM-016", *store_in_both(), other_mapping("@@{m2}@>{k}"), BOUND[2], setup=MARK
    ),
)
