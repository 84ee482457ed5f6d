"""Batches of reads: how long a connection sees the same, and what counts as a read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case, frames, send, sql
from kvref_conformance.cases.batches import (
    COMMITTED,
    DIRTY,
    SERIAL,
    SNAPSHOT,
    delete,
    get,
    insert,
    item_reply,
    miss,
    put,
    puts,
    select,
    update,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_conformance.case import Case
    from kvref_conformance.steps import Step

LEVELS = {"1": COMMITTED, "2": SNAPSHOT, "3": SERIAL}
# Two blanks: the second word must not be at a place where its address decides whether it is read (KV-MGET-026).
KEY_AND_MAPPING = send(
    "get  {k}1 @@{m1}\r\n", item_reply(1, "old").removesuffix("END\r\n") + "VALUE @@{m1} 0 {#w1}\r\n{w1}\r\nEND\r\n"
)
RANGE_OF_A_MAPPING = send("get @@{m1}.@>={k}1@<={k}1\r\n", item_reply(1, "old"))
BAD_FORMAT = "CLIENT_ERROR bad command line format\r\n"


def read_case(id_: str, requirements: str, *steps: Step, settings: Mapping[str, int] = SNAPSHOT) -> Case:
    """Write a case with four reads to a batch, at level 2 where not said otherwise."""
    return case(id_, requirements, *steps, settings=settings)


VIEW = (
    case("newest-each-time", "KV-RBATCH-001", insert(1, "old"), get(1, "old"), update(1, "new"), get(1, "new")),
    *(
        read_case(
            f"same-for-four-reads-at-{level}",
            "KV-RBATCH-002",
            insert(1, "old"),
            get(1, "old"),
            update(1, "new"),
            *(get(1, "old") for _ in range(3)),
            *(get(1, "new") for _ in range(2)),
            update(1, "newer"),
            *(get(1, "new") for _ in range(2)),
            get(1, "newer"),
            settings=LEVELS[level],
        )
        for level in ("2", "3")
    ),
    read_case(
        "newest-committed-at-1",
        "KV-RBATCH-003",
        insert(1, "old"),
        get(1, "old"),
        update(1, "new"),
        get(1, "new"),
        settings=COMMITTED,
    ),
    read_case(
        "same-for-four-reads-at-1",
        "KV-RBATCH-004",
        insert(1, "old"),
        get(1, "old"),
        update(1, "new"),
        *(get(1, "old") for _ in range(3)),
        get(1, "new"),
        settings=COMMITTED,
    ),
    read_case(
        "newest-at-0",
        "KV-RBATCH-005",
        insert(1, "old"),
        get(1, "old"),
        update(1, "new"),
        get(1, "new"),
        delete(1),
        miss(1),
        insert(2),
        get(2, "x"),
        settings=DIRTY,
    ),
    read_case(
        "first-read-fixes-all",
        "KV-RBATCH-006",
        insert(1, "old"),
        miss("none"),
        update(1, "new"),
        get(1, "old"),
    ),
    *(
        read_case(
            f"insert-unseen-at-{level}", "KV-RBATCH-007", miss("none"), insert(1), miss(1), settings=LEVELS[level]
        )
        for level in ("2", "3")
    ),
    *(
        read_case(
            f"delete-unseen-at-{level}",
            "KV-RBATCH-008",
            insert(1),
            get(1, "x"),
            delete(1),
            get(1, "x"),
            settings=LEVELS[level],
        )
        for level in ("2", "3")
    ),
    *(
        read_case(
            f"delete-seen-at-{level}",
            "KV-RBATCH-020",
            insert(1),
            get(1, "x"),
            delete(1),
            miss(1),
            settings=LEVELS[level],
        )
        for level in LEVELS
    ),
    *(
        read_case(
            id_,
            requirements,
            insert(1),
            get(1, "x"),
            *puts(6, 8, "b"),
            send("delete {k}1\r\n", "DELETED\r\n", on="b"),
            then,
        )
        for id_, requirements, then in (
            ("delete-of-another-unseen", "KV-RBATCH-008", get(1, "x")),
            ("delete-of-another-seen", "KV-RBATCH-020", miss(1)),
        )
    ),
    *(
        read_case(
            id_,
            requirements,
            insert(1),
            get(1, "x"),
            sql("UPDATE {t1} SET c1 = '{k}2' WHERE c1 = '{k}1'"),
            miss(2),
            then,
        )
        for id_, requirements, then in (
            ("rename-unseen", "KV-RBATCH-009", get(1, "x")),
            ("rename-seen", "KV-RBATCH-020", miss(1)),
        )
    ),
    read_case(
        "deleted-and-inserted-again",
        "KV-RBATCH-010",
        insert(1, "old"),
        get(1, "old"),
        delete(1),
        insert(1, "new"),
        get(1, "old"),
        *(miss("none") for _ in range(2)),
        get(1, "new"),
    ),
    read_case(
        "no-row-locks",
        "KV-RBATCH-011",
        insert(1, "old"),
        get(1, "old"),
        update(1, "new"),
        delete(1),
        sql("SELECT c2 FROM {t1} WHERE c1 = '{k}1'"),
        settings=SERIAL,
    ),
)
COUNTED = (
    read_case(
        "misses-count",
        "KV-RBATCH-012",
        insert(1, "old"),
        miss("none"),
        update(1, "new"),
        *(miss("none") for _ in range(3)),
        get(1, "new"),
    ),
    read_case(
        "gets-counts",
        "KV-RBATCH-012",
        insert(1, "old"),
        *(send("gets {k}1\r\n", "VALUE {k}1 0 3 <cas>\r\nold\r\nEND\r\n") for _ in range(2)),
        update(1, "new"),
        *(get(1, "old") for _ in range(2)),
        get(1, "new"),
    ),
    read_case(
        "several-keys-are-one-read",
        "KV-RBATCH-013",
        insert(1, "old"),
        send("get {k}1 {k}none {k}more\r\n", item_reply(1, "old")),
        update(1, "new"),
        *(get(1, "old") for _ in range(3)),
        get(1, "new"),
    ),
    read_case(
        "several-keys-are-several-reads",
        "KV-RBATCH-014",
        insert(1, "old"),
        send("get {k}1 {k}none {k}more\r\n", item_reply(1, "old")),
        update(1, "new"),
        get(1, "old"),
        get(1, "new"),
    ),
    read_case(
        "range-is-one-read",
        "KV-RBATCH-015",
        insert(1, "old"),
        insert(2, "old"),
        send("get @>={k}1@<={k}2\r\n", item_reply(1, "old").removesuffix("END\r\n") + item_reply(2, "old")),
        update(1, "new"),
        *(get(1, "old") for _ in range(3)),
        get(1, "new"),
    ),
    *(
        read_case(
            f"{name}-is-one-read",
            requirement,
            insert(1, "old"),
            request,
            update(1, "new"),
            *(get(1, "old") for _ in range(3)),
            get(1, "new"),
        )
        for name, requirement, request in (
            ("key-and-mapping", "KV-RBATCH-025", KEY_AND_MAPPING),
            ("range-of-a-mapping", "KV-RBATCH-027", RANGE_OF_A_MAPPING),
        )
    ),
    *(
        read_case(
            f"{name}-is-no-read",
            requirement,
            insert(1, "old"),
            sql("INSERT INTO {t1} VALUES ('{k}9', 'x', 0, 0, 1)"),
            request,
            update(1, "new"),
            *(get(1, "old") for _ in range(4)),
            get(1, "new"),
        )
        for name, requirement, request in (
            ("key-and-mapping", "KV-RBATCH-026", KEY_AND_MAPPING),
            ("range-of-a-mapping", "KV-RBATCH-028", RANGE_OF_A_MAPPING),
            ("range-to-an-expired-row", "KV-RBATCH-032", send("get @>={k}1@<={k}9\r\n", item_reply(1, "old"))),
            ("key-and-long-word", "KV-RBATCH-031", send(f"get {{k}}1 {'x' * 251}\r\n", BAD_FORMAT)),
        )
    ),
    *(
        read_case(
            f"{name}-is-no-read",
            requirement,
            insert(1, "old"),
            frames(f"get key={word}", found),
            update(1, "new"),
            *(frames("get key={k}1", found) for _ in range(4)),
            frames("get key={k}1", "get ok flags=0 value=new"),
        )
        for name, requirement, word in (
            ("binary-range", "KV-RBATCH-029", "@>={k}1@<={k}1"),
            ("vbucket", "KV-RBATCH-030", "{k}1 vbucket=1"),
        )
        for found in ("get ok flags=0 value=old",)
    ),
    read_case(
        "own-batch-of-reads",
        "KV-RBATCH-016",
        insert(1, "old"),
        get(1, "old"),
        update(1, "new"),
        get(1, "new", on="b"),
        update(1, "newer"),
        *(get(1, "new", on="b") for _ in range(3)),
        get(1, "old"),
        get(1, "newer", on="b"),
    ),
    read_case(
        "switching-get-is-one-read",
        "KV-RBATCH-033",
        sql("INSERT INTO {t2} VALUES ('{k}1', 'old', 0, 0, 0)"),
        send("get @@{m2}.{k}1\r\n", "VALUE @@{m2}.{k}1 0 3\r\nold\r\nEND\r\n"),
        sql("UPDATE {t2} SET c2 = 'new' WHERE c1 = '{k}1'"),
        *(get(1, "old") for _ in range(3)),
        get(1, "new"),
    ),
    *(
        read_case(
            f"{name}-is-one-read",
            "KV-RBATCH-034",
            insert(1, "old"),
            send(f"{line}\r\n", reply),
            update(1, "new"),
            *(get(1, "old") for _ in range(3)),
            get(1, "new"),
        )
        for name, line, reply in (
            ("mg", "mg {k}1 v", "VA 3\r\nold\r\n"),
            ("mg-miss", "mg {k}none v", "EN\r\n"),
            ("me-miss", "me {k}none", "EN\r\n"),
        )
    ),
    read_case(
        "switch-ends-reads",
        "KV-RBATCH-017",
        insert(1, "old"),
        get(1, "old"),
        update(1, "new"),
        get(1, "old"),
        send("bind {m2}\r\n", "SUCCEED\r\n"),
        send("bind {m1}\r\n", "SUCCEED\r\n"),
        get(1, "new"),
    ),
    read_case(
        "flush-ends-reads",
        "KV-RBATCH-024",
        insert(1, "old"),
        get(1, "old"),
        send("flush_all\r\n", "OK\r\n"),
        insert(1, "new"),
        get(1, "new"),
    ),
)
WRITTEN = (
    *(
        read_case(
            f"view-{name}",
            requirement,
            insert(1, "old"),
            get(1, "old"),
            update(1, "new"),
            put(2),
            get(1, value),
        )
        for name, requirement, value in (
            ("stays-after-a-write", "KV-RBATCH-022", "old"),
            ("ends-at-a-write", "KV-RBATCH-023", "new"),
        )
    ),
    read_case(
        "append-on-the-newest",
        "KV-RBATCH-018",
        insert(1, "old"),
        get(1, "old"),
        update(1, "new"),
        send("append {k}1 0 0 1\r\n!\r\n", "STORED\r\n"),
        get(1, "new!"),
        *puts(6, 8),
        select(1, "new!"),
    ),
    read_case(
        "incr-on-the-newest",
        "KV-RBATCH-018",
        insert(1, "5"),
        get(1, "5"),
        update(1, "7"),
        send("incr {k}1 1\r\n", "8\r\n"),
        get(1, "8"),
        *puts(6, 8),
        select(1, "8"),
    ),
    read_case(
        "own-writes-beside-the-view",
        "KV-RBATCH-019",
        insert(1, "old"),
        miss(2),
        put(2),
        get(2, "x"),
        send("delete {k}1\r\n", "DELETED\r\n"),
        miss(1),
    ),
)

CASES: tuple[Case, ...] = (*VIEW, *COUNTED, *WRITTEN)
