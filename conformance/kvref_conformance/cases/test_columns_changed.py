"""Several value columns under `append`, `prepend`, `incr`, `decr`, `delete` and `flush_all`."""

from __future__ import annotations

from kvref_conformance.case import case, send, sql
from kvref_conformance.cases.phrases import hit, miss, store, try_store
from kvref_conformance.cases.test_columns import CLIENT_ERROR, REFUSED, ROW, THREE, UNTOUCHED, WHOLE

NO_NUMBER = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"

CASES = (
    *(
        case(
            f"{verb}-to-columns",
            "KV-COL-019",
            WHOLE,
            store("{k}", "!", verb),
            hit("{k}", value, flags=3),
            shape=THREE,
        )
        for verb, value in (("append", "one|two|three!"), ("prepend", "!one|two|three"))
    ),
    case(
        "append-a-part",
        "KV-COL-019",
        store("{k}", "a"),
        store("{k}", "c", "append"),
        hit("{k}", "a||c"),
        shape=THREE,
    ),
    case("prepend-a-part", "KV-COL-019", store("{k}", "a|b"), try_store("{k}", "n|", REFUSED, "prepend"), shape=THREE),
    case(
        "append-a-surplus-part",
        "KV-COL-019",
        WHOLE,
        try_store("{k}", "|four", CLIENT_ERROR, "append"),
        UNTOUCHED,
        shape=THREE,
    ),
    *(
        case(
            f"{verb}-clears-columns",
            "KV-COL-017",
            WHOLE,
            store("{k}", "!", verb),
            sql(ROW, (value, None, None)),
            shape=THREE,
        )
        for verb, value in (("append", "one!"), ("prepend", "!one"))
    ),
    case(
        "append-keeps-separators",
        "KV-COL-018",
        WHOLE,
        store("{k}", "|a|", "append"),
        sql(ROW, ("one|a|", None, None)),
        shape=THREE,
    ),
    *(
        case(
            f"append-with-flags-{flags}",
            "KV-COL-020",
            WHOLE,
            store("{k}", "!", "append", flags=flags),
            sql(ROW, row),
            shape=THREE,
        )
        for flags, row in ((1, (None, "two!", None)), (2, (None, None, "three!")), (3, ("one!", None, None)))
    ),
    case("delete-columns", "KV-COL-021", WHOLE, send("delete {k}\r\n", "DELETED\r\n"), miss("{k}"), shape=THREE),
    case(
        "flush-columns",
        "KV-COL-021",
        WHOLE,
        send("flush_all\r\n", "OK\r\n", patience=15.0),
        sql("SELECT COUNT(*) FROM {t}", (0,)),
        shape=THREE,
    ),
)
