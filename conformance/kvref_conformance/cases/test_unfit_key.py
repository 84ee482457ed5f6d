"""A key or a value that its integer column cannot hold, within a batch: the other writes, the counts, the snapshot.

Other writes that fail: `test_failed_write.py`; such keys without batches: `test_key_column.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.case import Shape, ask, case, eventually, say, sql
from kvref_conformance.cases.batches import SNAPSHOT, WRITES, committed, put, puts
from kvref_conformance.cases.binary_phrases import NOT_FOUND, NOT_STORED
from kvref_conformance.cases.phrases import OPTIONS, inserted, misses, shows, stored
from kvref_conformance.steps import Disconnect

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Send, Sql, Step

NUMBERED: Final = Shape(f"k INT PRIMARY KEY, v VARCHAR(40), {OPTIONS}")
COUNTERS: Final = Shape(f"k INT PRIMARY KEY, v INT, {OPTIONS}")
FAILED: Final = "NOT_STORED\r\n"
REFUSED: Final = "CLIENT_ERROR <text>\r\n"
VERBS: Final = ("set", "add", "replace", "append", "prepend")
TAIL: Final = "abc 0 0 1\r\ny\r\n"
SILENT: Final = {
    "set-noreply": say("set abc 0 0 1 noreply\r\ny\r\n", ""),
    "cas-noreply": say("cas abc 0 0 1 5 noreply\r\ny\r\n", ""),
}
# Writes with a key that is no number.
FAILS: Final = {
    **{verb: say(f"{verb} {TAIL}", FAILED) for verb in VERBS},
    "cas": say("cas abc 0 0 1 5\r\ny\r\n", (FAILED, "NOT_FOUND\r\n")),
    **SILENT,
    "delete": say("delete abc\r\n", "NOT_FOUND\r\n"),
    "delete-noreply": say("delete abc noreply\r\n", ""),
    "mapped-word": say(f"set @@{{m}}.{TAIL}", FAILED),
    "sign-alone": say("set - 0 0 1\r\ny\r\n", FAILED),
    "digit-behind-a-letter": say("set x5 0 0 1\r\ny\r\n", FAILED),
}
BINARY: Final = {
    **{verb: ask(f"{verb} key=abc value=yyyy", f"{verb} {NOT_STORED}") for verb in ("set", "setq", "append")},
    "add": ask("add key=abc value=y", 'add 0x02 "Data exists for key"'),
    "replaceq": ask("replaceq key=abc value=y", f"replaceq {NOT_FOUND}"),
    "deleteq": ask("deleteq key=abc", f"deleteq {NOT_FOUND}"),
}
REFUSES: Final = {
    **{verb: say(f"{verb} {TAIL}", REFUSED) for verb in VERBS},
    "cas": say("cas abc 0 0 1 5\r\ny\r\n", REFUSED),
    **SILENT,
}
SUMS: Final = {
    "incr": say("incr abc 1\r\n", ("SERVER_ERROR failed to store item\r\n", "<number>\r\n")),
    "decr-noreply": say("decr abc 1 noreply\r\n", ""),
}
PACKET: Final = "".join(f"set {key} 0 0 1\r\nx\r\n" for key in (1, "abc", 2, 3))


def sets(first: int, last: int) -> tuple[Send, ...]:
    """Store FIRST to LAST, one request each."""
    return tuple(stored(f"{n}", "7") for n in range(first, last + 1))


def frames(first: int, last: int) -> tuple[Send, ...]:
    """Store FIRST to LAST in the binary protocol, one frame each."""
    return tuple(ask(f"set key={n} value=7", "set ok cas=<cas>") for n in range(first, last + 1))


def rows(number: int) -> Sql:
    """Want so many rows to be committed."""
    return sql("SELECT COUNT(*) FROM {t}", (number,))


def numbered(id_: str, requirements: str, *steps: Step, shape: Shape = NUMBERED) -> Case:
    """Write a case with four writes to a batch over a table whose keys are integers."""
    return case(id_, requirements, *steps, shape=shape, settings=WRITES)


def viewed(id_: str, requirements: str, request: Send, then: str) -> Case:
    """Write a case that reads `old`, makes it `new` by SQL, sends a request, and reads again in the same batch."""
    steps = (inserted("5", "'old', 0, 0, 0"), shows("5", "old"), sql("UPDATE {t} SET v = 'new' WHERE k = 5"))
    return case(id_, requirements, *steps, request, shows("5", then), shape=NUMBERED, settings=SNAPSHOT)


# What takes the pending write of 1 back: it is missing at once, and four further writes make a batch.
GONE: Final[tuple[Step, ...]] = (misses("1"), *sets(2, 4), rows(0), *sets(5, 5), rows(4))
DISCARDS = (
    *(
        numbered(f"unfit-key-discards-{name}", "KV-BATCH-026", *sets(1, 1), request, *GONE)
        for name, request in FAILS.items()
    ),
    *(
        numbered(
            f"unfit-key-discards-binary-{name}",
            "KV-BATCH-026",
            *frames(1, 1),
            request,
            ask("get key=1", f"get {NOT_FOUND}"),
            *frames(2, 4),
            rows(0),
            *frames(5, 5),
            rows(4),
        )
        for name, request in BINARY.items()
    ),
    numbered(
        "unfit-key-discards-in-a-packet",
        "KV-BATCH-026",
        say(PACKET, "STORED\r\nNOT_STORED\r\nSTORED\r\nSTORED\r\n"),
        misses("1"),
        Disconnect(),
        eventually(rows(2)),
    ),
    numbered(
        "unfit-key-discards-deletes-and-sums",
        "KV-BATCH-026",
        inserted("5", "'5', 0, 0, 0"),
        inserted("6", "'6', 0, 0, 0"),
        say("append 5 0 0 1\r\n0\r\n", "STORED\r\n"),
        say("delete 6\r\n", "DELETED\r\n"),
        FAILS["replace"],
        shows("5", "5"),
        shows("6", "6"),
    ),
    *(
        viewed(f"unfit-key-ends-the-view-{name}", "KV-BATCH-026", FAILS[name], "new")
        for name in ("set", "add", "delete")
    ),
    *(
        numbered(
            f"unfit-key-counts-{name}", "KV-BATCH-027", *sets(1, 1), request, *sets(2, 2), rows(0), *sets(3, 3), rows(3)
        )
        for name, request in SUMS.items()
    ),
)
KEPT = (
    *(
        numbered(f"unfit-key-keeps-{name}", "KV-BATCH-028", *sets(1, 3), request, rows(0), *sets(4, 4), rows(4))
        for name, request in REFUSES.items()
    ),
    *(
        viewed(f"unfit-key-keeps-the-view-{name}", "KV-BATCH-028", REFUSES[name], "old")
        for name in ("set", "add", "cas")
    ),
    case(
        "long-key-keeps-the-batch",
        "KV-BATCH-028",
        *puts(1, 3),
        say("set {k:40} 0 0 1\r\ny\r\n", REFUSED),
        put(4),
        committed(4),
        settings=WRITES,
    ),
)
OF_ANOTHER = numbered(
    "unfit-key-of-another-connection",
    "KV-BATCH-025",
    *sets(1, 3),
    say(f"bind {{m}}\r\nset {TAIL}", (f"SUCCEED\r\n{FAILED}", f"SUCCEED\r\n{REFUSED}"), on="b"),
    *sets(4, 4),
    rows(4),
)
# A value that is no number is refused behind the key: each profile counts it as any write that fails.
VALUES = (
    numbered(
        "unfit-value-discards", "KV-BATCH-022", *sets(1, 1), say("set 9 0 0 1\r\ny\r\n", FAILED), *GONE, shape=COUNTERS
    ),
    numbered(
        "unfit-value-undoes-itself",
        "KV-BATCH-021",
        *sets(1, 3),
        say("set 9 0 0 1\r\ny\r\n", REFUSED),
        *sets(4, 4),
        rows(4),
        shape=COUNTERS,
    ),
)

CASES: tuple[Case, ...] = (*DISCARDS, *KEPT, OF_ANOTHER, *VALUES)


def test_unfit_key(case: Case, judge: Callable[[Case], None]) -> None:
    """Judge one case."""
    judge(case)
