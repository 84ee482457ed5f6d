"""A key or a value that its integer column cannot hold, within a batch: the other writes, the counts, the snapshot.

Other writes that fail: `test_failed_write.py`; such keys without batches: `test_key_column.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.case import Shape, case, eventually, frames, send, sql
from kvref_conformance.cases.batches import SNAPSHOT, WRITES, committed, put, puts
from kvref_conformance.cases.binary_phrases import NOT_FOUND, NOT_STORED
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, miss, store
from kvref_conformance.steps import Disconnect

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.steps import Send, Sql, Step

NUMBERED: Final = Shape(f"k INT PRIMARY KEY, v VARCHAR(40), {OPTIONS}")
COUNTERS: Final = Shape(f"k INT PRIMARY KEY, v INT, {OPTIONS}")
FAILED: Final = "NOT_STORED\r\n"
REFUSED: Final = "CLIENT_ERROR <text>\r\n"
VERBS: Final = ("set", "add", "replace", "append", "prepend")
TAIL: Final = "abc 0 0 1\r\ny\r\n"
SILENT: Final = {
    "set-noreply": send("set abc 0 0 1 noreply\r\ny\r\n", ""),
    "cas-noreply": send("cas abc 0 0 1 5 noreply\r\ny\r\n", ""),
}
# Writes with a key that is not a number.
FAILS: Final = {
    **{verb: send(f"{verb} {TAIL}", FAILED) for verb in VERBS},
    "cas": send("cas abc 0 0 1 5\r\ny\r\n", (FAILED, "NOT_FOUND\r\n")),
    **SILENT,
    "delete": send("delete abc\r\n", "NOT_FOUND\r\n"),
    "delete-noreply": send("delete abc noreply\r\n", ""),
    "mapped-word": send(f"set @@{{m}}.{TAIL}", FAILED),
    "sign-alone": send("set - 0 0 1\r\ny\r\n", FAILED),
    "digit-behind-a-letter": send("set x5 0 0 1\r\ny\r\n", FAILED),
}
BINARY: Final = {
    **{verb: frames(f"{verb} key=abc value=yyyy", f"{verb} {NOT_STORED}") for verb in ("set", "setq", "append")},
    "add": frames("add key=abc value=y", 'add 0x02 "Data exists for key"'),
    "replaceq": frames("replaceq key=abc value=y", f"replaceq {NOT_FOUND}"),
    "deleteq": frames("deleteq key=abc", f"deleteq {NOT_FOUND}"),
}
REFUSES: Final = {
    **{verb: send(f"{verb} {TAIL}", REFUSED) for verb in VERBS},
    "cas": send("cas abc 0 0 1 5\r\ny\r\n", REFUSED),
    **SILENT,
}
SUMS: Final = {
    "incr": send("incr abc 1\r\n", ("SERVER_ERROR failed to store item\r\n", "<number>\r\n")),
    "decr-noreply": send("decr abc 1 noreply\r\n", ""),
}
PACKET: Final = "".join(f"set {key} 0 0 1\r\nx\r\n" for key in (1, "abc", 2, 3))


def store_range(first: int, last: int) -> tuple[Send, ...]:
    """Store FIRST to LAST, one request each."""
    return tuple(store(f"{n}", "7") for n in range(first, last + 1))


def store_frames(first: int, last: int) -> tuple[Send, ...]:
    """Store FIRST to LAST in the binary protocol, one frame each."""
    return tuple(frames(f"set key={n} value=7", "set ok cas=<cas>") for n in range(first, last + 1))


def count_rows(number: int) -> Sql:
    """Want so many rows to be committed."""
    return sql("SELECT COUNT(*) FROM {t}", (number,))


def integer_case(id_: str, requirements: str, *steps: Step, shape: Shape = NUMBERED) -> Case:
    """Write a case with four writes to a batch over a table whose keys are integers."""
    return case(id_, requirements, *steps, shape=shape, settings=WRITES)


def snapshot_case(id_: str, requirements: str, request: Send, then: str) -> Case:
    """Write a case that reads `old`, makes it `new` by SQL, sends a request, and reads again in the same batch."""
    steps = (insert("5", "'old', 0, 0, 0"), hit("5", "old"), sql("UPDATE {t} SET v = 'new' WHERE k = 5"))
    return case(id_, requirements, *steps, request, hit("5", then), shape=NUMBERED, settings=SNAPSHOT)


# What takes the pending write of 1 back: it is missing at once, and four further writes make a batch.
GONE: Final[tuple[Step, ...]] = (miss("1"), *store_range(2, 4), count_rows(0), *store_range(5, 5), count_rows(4))
DISCARDS = (
    *(
        integer_case(f"unfit-key-discards-{name}", "KV-BATCH-026", *store_range(1, 1), request, *GONE)
        for name, request in FAILS.items()
    ),
    *(
        integer_case(
            f"unfit-key-discards-binary-{name}",
            "KV-BATCH-026",
            *store_frames(1, 1),
            request,
            frames("get key=1", f"get {NOT_FOUND}"),
            *store_frames(2, 4),
            count_rows(0),
            *store_frames(5, 5),
            count_rows(4),
        )
        for name, request in BINARY.items()
    ),
    integer_case(
        "unfit-key-discards-in-a-packet",
        "KV-BATCH-026",
        send(PACKET, "STORED\r\nNOT_STORED\r\nSTORED\r\nSTORED\r\n"),
        miss("1"),
        Disconnect(),
        eventually(count_rows(2)),
    ),
    integer_case(
        "unfit-key-discards-deletes-and-sums",
        "KV-BATCH-026",
        insert("5", "'5', 0, 0, 0"),
        insert("6", "'6', 0, 0, 0"),
        send("append 5 0 0 1\r\n0\r\n", "STORED\r\n"),
        send("delete 6\r\n", "DELETED\r\n"),
        FAILS["replace"],
        hit("5", "5"),
        hit("6", "6"),
    ),
    *(
        snapshot_case(f"unfit-key-ends-the-view-{name}", "KV-BATCH-026", FAILS[name], "new")
        for name in ("set", "add", "delete")
    ),
    *(
        integer_case(
            f"unfit-key-counts-{name}",
            "KV-BATCH-027",
            *store_range(1, 1),
            request,
            *store_range(2, 2),
            count_rows(0),
            *store_range(3, 3),
            count_rows(3),
        )
        for name, request in SUMS.items()
    ),
)
KEPT = (
    *(
        integer_case(
            f"unfit-key-keeps-{name}",
            "KV-BATCH-028",
            *store_range(1, 3),
            request,
            count_rows(0),
            *store_range(4, 4),
            count_rows(4),
        )
        for name, request in REFUSES.items()
    ),
    *(
        snapshot_case(f"unfit-key-keeps-the-view-{name}", "KV-BATCH-028", REFUSES[name], "old")
        for name in ("set", "add", "cas")
    ),
    case(
        "long-key-keeps-the-batch",
        "KV-BATCH-028",
        *puts(1, 3),
        send("set {k:40} 0 0 1\r\ny\r\n", REFUSED),
        put(4),
        committed(4),
        settings=WRITES,
    ),
)
OF_ANOTHER = integer_case(
    "unfit-key-of-another-connection",
    "KV-BATCH-025",
    *store_range(1, 3),
    send(f"bind {{m}}\r\nset {TAIL}", (f"SUCCEED\r\n{FAILED}", f"SUCCEED\r\n{REFUSED}"), on="b"),
    *store_range(4, 4),
    count_rows(4),
)
# A value that is not a number is refused behind the key: each profile counts it as any write that fails.
VALUES = (
    integer_case(
        "unfit-value-discards",
        "KV-BATCH-022",
        *store_range(1, 1),
        send("set 9 0 0 1\r\ny\r\n", FAILED),
        *GONE,
        shape=COUNTERS,
    ),
    integer_case(
        "unfit-value-undoes-itself",
        "KV-BATCH-021",
        *store_range(1, 3),
        send("set 9 0 0 1\r\ny\r\n", REFUSED),
        *store_range(4, 4),
        count_rows(4),
        shape=COUNTERS,
    ),
)

CASES: tuple[Case, ...] = (*DISCARDS, *KEPT, OF_ANOTHER, *VALUES)
