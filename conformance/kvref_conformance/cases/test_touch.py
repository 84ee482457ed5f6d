"""touch, gat and gats: which item gets which time, and what of it stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, miss, store
from kvref_conformance.steps import Pause

if TYPE_CHECKING:
    from kvref_conformance.steps import Send

ONE = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}, other VARCHAR(9)")
NARROW = Shape("k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), f INT, c BIGINT UNSIGNED, e SMALLINT")
TIMELESS = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}", expiry="0")
TOUCHED = "TOUCHED\r\n"
ERROR = "ERROR\r\n"
MISSING = "NOT_FOUND\r\n"
BAD_FORMAT = "CLIENT_ERROR bad command line format\r\n"
BAD_TIME = "CLIENT_ERROR invalid exptime argument\r\n"
LATER = 2000000000
X = store("{k}", "x")
FOUND = "VALUE {k} 0 1\r\nx\r\nEND\r\n"
NUMBERED = send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n")
SAME = send("gets {k}\r\n", "VALUE {k} 0 1 {a}\r\nx\r\nEND\r\n")
PASSED = Pause(3.1)
ENDS = (("below-zero-ends", -1), ("4294967295-ends", 4294967295))


def touch(time: int | str, answer: str = TOUCHED) -> Send:
    """Touch {k}."""
    return send(f"touch {{k}} {time}\r\n", answer)


# What each key is stored for, which command gives it which time, and whether it is there when 3 seconds have passed.
Time = tuple[str, int, str, str, bool]
TOUCHES: tuple[Time, ...] = (
    ("{k1}", 2, "touch {k1} 100", TOUCHED, True),
    ("{k2}", 2, "touch {k2} 0", TOUCHED, True),
    ("{k3}", 2, "touch {k3} 100 noreply", "", True),
    ("{k4}", 0, "touch {k4} 1", TOUCHED, False),
)


def touch_and_wait(times: tuple[Time, ...]) -> tuple[Send | Pause, ...]:
    """Store each key, give it its time, wait, and see by `get` alone which are there."""
    return (
        *(send(f"set {key} 0 {time} 1\r\nx\r\n", "STORED\r\n") for key, time, *_ in times),
        *(send(f"{line}\r\n", answer) for _, _, line, answer, _ in times),
        PASSED,
        *(hit(key, "x") if there else miss(key) for key, *_, there in times),
    )


CASES = (
    case(
        "touch-times",
        "KV-TOUCH-001 KV-TOUCH-003 KV-TOUCH-004 KV-TOUCH-007 KV-TOUCH-012",
        *touch_and_wait(TOUCHES),
        send("touch {k4} 9\r\n", MISSING),
    ),
    *(
        case(
            f"{verb}-times",
            "KV-TOUCH-014",
            *touch_and_wait(
                (
                    ("{k}", 2, f"{verb} 100 {{k}}", f"VALUE {{k}} 0 1{number}\r\nx\r\nEND\r\n", True),
                    ("{k2}", 0, f"{verb} 1 {{k2}}", f"VALUE {{k2}} 0 1{number}\r\nx\r\nEND\r\n", False),
                )
            ),
        )
        for verb, number in (("gat", ""), ("gats", " <cas>"))
    ),
    case(
        "gat-times-of-several",
        "KV-TOUCH-014",
        *(send(f"set {{k{n}}} 0 2 1\r\nx\r\n", "STORED\r\n") for n in (1, 2, 3, 4)),
        send("gat 100 {k1} {k2}\r\n", "VALUE {k1} 0 1\r\nx\r\nVALUE {k2} 0 1\r\nx\r\nEND\r\n"),
        send("gats 100 {k3} {k4}\r\n", "VALUE {k3} 0 1 <cas>\r\nx\r\nVALUE {k4} 0 1 <cas>\r\nx\r\nEND\r\n"),
        PASSED,
        *(hit(f"{{k{n}}}", "x") for n in (1, 2, 3, 4)),
    ),
    case("touch", "KV-TOUCH-001", X, touch(0), touch(LATER), touch(100)),
    case("touch-missing", "KV-TOUCH-002", touch(0, MISSING), touch(100, MISSING)),
    case(
        "touch-keeps-flags",
        "KV-TOUCH-005",
        store("{k}", "value", flags=7),
        touch(100),
        hit("{k}", "value", flags=7),
    ),
    case("touch-keeps-cas", "KV-TOUCH-006", X, NUMBERED, touch(100), SAME),
    case("touch-noreply-refused", "KV-TOUCH-007", send("touch {k} x noreply\r\ntouch {k2} 0 noreply\r\n", "")),
    case("touch-other-word", "KV-TOUCH-008", X, touch("-1 other"), miss("{k}")),
    *(case(f"touch-time-{time}", "KV-TOUCH-009", X, touch(time, BAD_TIME)) for time in ("x", "1x", "-")),
    *(
        case(f"touch-words-{len(line.split())}", "KV-TOUCH-010", send(f"{line}\r\n", ERROR))
        for line in ("touch", "touch {k}", "touch {k} 0 0 0")
    ),
    case("touch-long-key", "KV-TOUCH-011", send("touch {k:251} 0\r\n", BAD_FORMAT)),
    case(
        "gat",
        "KV-TOUCH-013",
        store("{k}", "x", flags=3),
        store("{k2}", "yy"),
        send("gat 0 {k2} {k3} {k}\r\n", "VALUE {k2} 0 2\r\nyy\r\nVALUE {k} 3 1\r\nx\r\nEND\r\n"),
    ),
    case("gat-missing", "KV-TOUCH-013", send("gat 100 {k}\r\n", "END\r\n")),
    case("gats", "KV-TOUCH-015", X, NUMBERED, send("gats 100 {k}\r\n", "VALUE {k} 0 1 {a}\r\nx\r\nEND\r\n")),
    case("gat-keeps-cas", "KV-TOUCH-016", X, NUMBERED, send("gat 100 {k}\r\n", FOUND), SAME),
    case("gat-no-key", "KV-TOUCH-017", send("gat 0\r\n", "END\r\n"), send("gats 0\r\n", "END\r\n")),
    case("gat-time", "KV-TOUCH-018", send("gat x {k}\r\n", BAD_TIME), send("gats 1x {k}\r\n", BAD_TIME)),
    case("gat-alone", "KV-TOUCH-019", send("gat\r\n", ERROR), send("gats\r\n", ERROR)),
    case(
        "gat-long-key",
        "KV-TOUCH-020",
        X,
        send("gat 0 {k} {k:251}\r\n", BAD_FORMAT),
        send("gats 0 {k:251}\r\n", BAD_FORMAT),
    ),
    case(
        "touch-switches",
        "KV-TOUCH-023",
        store("@@{m2}.{k}", "2"),
        store("@@{m1}.{k2}", "1"),
        send("touch @@{m2}.{k} 100\r\n", TOUCHED),
        hit("{k}", "2"),
    ),
    case(
        "gat-switches",
        "KV-TOUCH-024",
        store("@@{m2}.{k}", "2"),
        store("@@{m1}.{k}", "1"),
        send(
            "gat 0 @@{m2}.{k} @@{m1}.{k} @@{m2}\r\n",
            "VALUE @@{m2}.{k} 0 1\r\n2\r\nVALUE @@{m1}.{k} 0 1\r\n1\r\nVALUE @@{m2} 0 {#w2}\r\n{w2}\r\nEND\r\n",
        ),
        hit("{k}", "2"),
    ),
    case(
        "touch-column",
        "KV-TOUCH-025",
        insert("{k}", "'x', NULL, NULL, 0, 'kept'"),
        send(f"touch {{k}} {LATER}\r\n", TOUCHED),
        sql("SELECT v, f, c, e, other FROM {t}", ("x", None, None, LATER, "kept")),
        shape=ONE,
    ),
    case(
        "touch-no-column",
        "KV-TOUCH-026",
        X,
        touch(100, "CLIENT_ERROR <text>\r\n"),
        send("gat 100 {k}\r\n", "CLIENT_ERROR <text>\r\n"),
        shape=TIMELESS,
    ),
    case("touch-no-column-0", "KV-TOUCH-027", X, touch(0), send("gat 0 {k}\r\n", FOUND), shape=TIMELESS),
    *(
        case(
            f"touch-{name}",
            "KV-TOUCH-029",
            X,
            touch(time),
            miss("{k}"),
            touch(0, MISSING),
            X,
            touch(f"{time} noreply", ""),
            miss("{k}"),
        )
        for name, time in ENDS
    ),
    *(case(f"gat-{name}", "KV-TOUCH-029", X, send(f"gat {time} {{k}}\r\n", FOUND), miss("{k}")) for name, time in ENDS),
    case(
        "touch-below-zero-no-column",
        "KV-TOUCH-036",
        X,
        touch(-1),
        miss("{k}"),
        X,
        send("gat -1 {k}\r\n", FOUND),
        miss("{k}"),
        sql("SELECT COUNT(*) FROM {t}", (0,)),
        shape=TIMELESS,
    ),
    *(
        case(
            f"touch-beyond-the-column-{time}",
            "KV-TOUCH-030",
            X,
            touch(time, "CLIENT_ERROR <text>\r\n"),
            sql("SELECT e FROM {t}", (0,)),
            shape=NARROW,
        )
        for time in (100, LATER)
    ),
    case(
        "touch-no-mapping",
        "KV-TOUCH-031",
        send("touch @@nope.{k} 0\r\n", MISSING),
        send("gat 0 @@nope.{k}\r\n", "END\r\n"),
        shape=ONE,
    ),
    case("gat-range", "KV-TOUCH-032", send("gat 0 @>{k}\r\n", "CLIENT_ERROR <text>\r\n"), shape=ONE),
)
