"""Storage lines with two faults: the reply names the one that is checked first."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

from kvref_conformance.case import Shape, case, send

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.steps import Send

# Where the data block of a refused line runs as a command, its ERROR follows.
BAD_FORMAT: Final = tuple("CLIENT_ERROR bad command line format\r\n" + more for more in ("", "ERROR\r\n"))
BAD_CHUNK: Final = tuple("CLIENT_ERROR bad data chunk\r\n" + more for more in ("", "ERROR\r\n"))
TOO_LARGE: Final = tuple("SERVER_ERROR object too large for cache\r\n" + more for more in ("", "ERROR\r\n"))
STORED: Final = send("set {k} 0 0 1\r\nx\r\n", "STORED\r\n")
KEPT: Final = send("get {k}\r\n", "VALUE {k} 0 1\r\nx\r\nEND\r\n")
SHORT: Final = Shape("k VARCHAR(32) PRIMARY KEY, v VARCHAR(4), f INT, c BIGINT UNSIGNED, e INT")
FULL: Final = Shape("k VARCHAR(32) PRIMARY KEY, v VARCHAR(4), f INT, c BIGINT UNSIGNED, e INT, more INT NOT NULL")
# A storage line of each fault that is checked behind the words and numbers; {0} is flags, expiry and length.
LATER: Final = {
    "data": "set {{k}} {0}\r\nvv\r\n",
    "mapping": "set @@none.k {0}\r\nv\r\n",
    "add": "add {{k}} {0}\r\nv\r\n",
    "replace": "replace {{k2}} {0}\r\nv\r\n",
    "cas": "cas {{k2}} {0} 1\r\nv\r\n",
}
MALFORMED: Final = {"flags": "x 0 1", "expiry": "0 x 1", "length": "0 0 x"}
HUGE: Final = "2097152\r\n{v~2097152}\r\n"  # the largest item has 1 MiB


def two_fault_case(name: str, requirement: str, step: Send, shape: Shape | None = None) -> Case:
    """Return a case whose line has two faults and leaves the stored item as it is."""
    return case(name, requirement, STORED, step, KEPT, shape=shape)


WORDS = (
    two_fault_case("few-words-long-key", "KV-ORDER-001", send("set {k2:251} 0 0\r\n", "ERROR\r\n")),
    two_fault_case("few-words-flags", "KV-ORDER-001", send("set {k} x 0\r\n", "ERROR\r\n")),
    two_fault_case("few-words-expiry", "KV-ORDER-001", send("set {k} 0 x\r\n", "ERROR\r\n")),
    two_fault_case("few-words-mapping", "KV-ORDER-001", send("set @@none.k 0 0\r\n", "ERROR\r\n")),
    two_fault_case("few-words-add", "KV-ORDER-001", send("add {k} 0 0\r\n", "ERROR\r\n")),
)
FORMAT = tuple(
    two_fault_case(f"malformed-{number}-{fault}", "KV-ORDER-002", send(LATER[fault].format(words), BAD_FORMAT))
    for (number, words), fault in product(MALFORMED.items(), LATER)
    if (number, fault) != ("length", "data")  # without a length the data has no end
)
SIZE = (
    two_fault_case("large-mapping", "KV-ORDER-003", send("set @@none.k 0 0 " + HUGE, TOO_LARGE, patience=15.0)),
    two_fault_case("large-add", "KV-ORDER-003", send("add {k} 0 0 " + HUGE, TOO_LARGE, patience=15.0)),
)
DATA = (
    two_fault_case("bad-data-mapping", "KV-ORDER-004", send("set @@none.k 0 0 1\r\nvv\r\n", BAD_CHUNK)),
    two_fault_case("bad-data-add", "KV-ORDER-004", send("add {k} 0 0 1\r\nvv\r\n", BAD_CHUNK)),
    two_fault_case("bad-data-replace", "KV-ORDER-004", send("replace {k2} 0 0 1\r\nvv\r\n", BAD_CHUNK)),
    two_fault_case("bad-data-cas", "KV-ORDER-004", send("cas {k2} 0 0 1 1\r\nvv\r\n", BAD_CHUNK)),
)
LONG = "5\r\nvvvvv\r\n"
TABLE = (
    two_fault_case("mapping-long-value", "KV-ORDER-005", send("set @@none.k 0 0 " + LONG, "NOT_FOUND\r\n"), SHORT),
    *(
        two_fault_case(
            f"long-key-{verb}",
            "KV-ORDER-006",
            send(f"{verb} {{k2:40}} 0 0 {words}\r\nvvvvv\r\n", "CLIENT_ERROR key too long for column k (32)\r\n"),
            SHORT,
        )
        for verb, words in (("set", "5"), ("replace", "5"), ("cas", "5 1"))
    ),
    two_fault_case("add-long-value", "KV-ORDER-007", send("add {k} 0 0 " + LONG, "NOT_STORED\r\n"), SHORT),
    two_fault_case("replace-long-value", "KV-ORDER-007", send("replace nn 0 0 " + LONG, "NOT_STORED\r\n"), SHORT),
    two_fault_case("cas-long-value", "KV-ORDER-007", send("cas nn 0 0 5 1\r\nvvvvv\r\n", "NOT_FOUND\r\n"), SHORT),
    case(
        "long-value-not-null",
        "KV-ORDER-008",
        send("set k 0 0 " + LONG, "SERVER_ERROR object too large for cache: column v takes 4 characters\r\n"),
        shape=FULL,
    ),
)

CASES = (*WORDS, *FORMAT, *SIZE, *DATA, *TABLE)
