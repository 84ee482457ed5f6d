"""mg: its reply, its effect on the expiry time, and which client is to recache an item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import Shape, case, send, sql
from kvref_conformance.cases.phrases import OPTIONS, hit, insert, miss, store
from kvref_conformance.steps import Pause

if TYPE_CHECKING:
    from kvref_conformance.steps import Send

ONE = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}, other VARCHAR(9)")
TIMELESS = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}", expiry="0")
LATER = 2000000000
X = store("{k}", "x")
PASSED = Pause(3.1)
HIT = "HD\r\n"
UNREAD, READ = "HD h0\r\n", "HD h1\r\n"
LATER_ON = Pause(2.1)
NUMBER = store("{k}", "10")
COUNTED = send("incr {k} 1\r\n", ("11\r\n", "12\r\n"))
MISS = "EN\r\n"
DUPLICATE = "CLIENT_ERROR duplicate flag\r\n"
UNKNOWN = "CLIENT_ERROR invalid flag\r\n"
NO_NUMBER = "CLIENT_ERROR bad token in command line format\r\n"
BAD_FORMAT = "CLIENT_ERROR bad command line format\r\n"


def expiring(seconds: int, value: str = "x") -> Send:
    """Store {k} for so many seconds."""
    return send(f"set {{k}} 0 {seconds} {len(value)}\r\n{value}\r\n", "STORED\r\n")


def mg(flags: str, *allow: str, key: str = "{k}") -> Send:
    """Send mg for {k} with those flags."""
    return send(f"mg {key} {flags}\r\n", allow)


def seconds(count: int, behind: str = "") -> tuple[str, str]:
    """Return the replies to l where this number of seconds has passed, or one more because a second has begun."""
    return f"HD l{count}{behind}\r\n", f"HD l{count + 1}{behind}\r\n"


def ttl(flags: str, before: str, seconds: int, behind: str = "\r\n") -> Send:
    """Send mg with flags and expect this number of seconds, or one less if a second has begun."""
    return mg(flags, *(f"{before}t{each}{behind}" for each in (seconds, seconds - 1)))


ANSWERS = (
    case("mg-hit", "KV-MG-001", X, mg("", HIT)),
    case("mg-value", "KV-MG-002", X, mg("v", "VA 1\r\nx\r\n")),
    case("mg-value-long", "KV-MG-002", store("{k}", "a b\r\nc"), mg("v", "VA 6\r\na b\r\nc\r\n")),
    case("mg-value-empty", "KV-MG-002", store("{k}", ""), mg("v", "VA 0\r\n\r\n")),
    case("mg-miss", "KV-MG-003", mg("", MISS), mg("v", MISS)),
    case("mg-s", "KV-MG-004", store("{k}", "four"), mg("s", "HD s4\r\n")),
    case("mg-t", "KV-MG-005", X, mg("t", "HD t-1\r\n"), expiring(100), ttl("t", "HD ", 100)),
    # A server that shows the time as it was stored is right at once, and wrong later.
    case("mg-t-later", "KV-MG-005", expiring(100), LATER_ON, ttl("t", "HD ", 98), mg("", HIT)),
    case("mg-c", "KV-MG-006", X, send("gets {k}\r\n", "VALUE {k} 0 1 <cas a>\r\nx\r\nEND\r\n"), mg("c", "HD c{a}\r\n")),
    case("mg-c-of-ms", "KV-MG-006", send("ms {k} 1 c\r\nx\r\n", "HD c<cas a>\r\n"), mg("c", "HD c{a}\r\n")),
    case("mg-f", "KV-MG-007", store("{k}", "x", flags=7), mg("f", "HD f7\r\n")),
    case("mg-k", "KV-MG-008", X, mg("k", "HD k{k}\r\n")),
    case("mg-O", "KV-MG-009", X, mg("Oabc", "HD Oabc\r\n"), mg("O", "HD O\r\n")),
    case(
        "mg-order",
        "KV-MG-010",
        X,
        mg("t Oq v k f s", "VA 1 t-1 Oq k{k} f0 s1\r\nx\r\n"),
        mg("s k", "HD s1 k{k}\r\n"),
    ),
    case("mg-miss-repeats", "KV-MG-011", mg("s t k Oq c f v", "EN k{k} Oq\r\n")),
    case("mg-q-miss", "KV-MG-012", send("mg {k} q k\r\nmg {k} v q\r\nmn\r\n", "MN\r\n")),
    case("mg-q-hit", "KV-MG-045", X, mg("q v", "VA 1\r\nx\r\n"), mg("q", HIT)),
    case("mg-P-L", "KV-MG-025", X, mg("P L s", "HD s1\r\n"), mg("Pa Lb/ k", "HD k{k}\r\n")),
)
WRITES = (
    case(
        "mg-T",
        "KV-MG-013 KV-MG-033",
        expiring(2),
        store("{k2}", "x"),
        mg("T100", HIT),
        mg("T1 v", "VA 1\r\nx\r\n", key="{k2}"),
        PASSED,
        hit("{k}", "x"),
        mg("v", MISS, key="{k2}"),
    ),
    case("mg-T-miss", "KV-MG-013", mg("T100", MISS)),
    case(
        "mg-T-keeps",
        "KV-MG-014",
        store("{k}", "x", flags=7),
        mg("c", "HD c<cas a>\r\n"),
        mg("T100", HIT),
        mg("c f s", "HD c{a} f7 s1\r\n"),
    ),
    case("mg-t-T", "KV-MG-015 KV-MG-046", X, mg("t T100", "HD t-1\r\n"), ttl("T100 t", "HD ", 100)),
    case(
        "mg-N",
        "KV-MG-016",
        ttl("N30 t v s", "VA 0 ", 30, " s0 W\r\n\r\n"),
        send("get {k}\r\n", "VALUE {k} 0 0\r\n\r\nEND\r\n"),
    ),
    case(
        "mg-N-others",
        "KV-MG-017 KV-MG-021",
        mg("N30", "HD W\r\n"),
        send("mg {k} N30\r\n", "HD Z\r\n", on="b"),
        mg("v", "VA 0 Z\r\n\r\n"),
        X,
        mg("v", "VA 1\r\nx\r\n"),
    ),
    case("mg-N-hit", "KV-MG-018", X, mg("N30 t v", "VA 1 t-1\r\nx\r\n")),
    case(
        "mg-R",
        "KV-MG-019 KV-MG-021",
        expiring(100),
        mg("R200", "HD W\r\n"),
        send("mg {k} R200\r\n", "HD Z\r\n", on="b"),
        mg("", "HD Z\r\n"),
        expiring(100, "y"),
        mg("v", "VA 1\r\ny\r\n"),
        mg("R200", "HD W\r\n"),
    ),
    case(
        "mg-W-X-Z",
        "KV-MG-049",
        X,
        send("md {k} I\r\n", HIT),
        mg("s k Oq v", "VA 1 s1 k{k} Oq X W\r\nx\r\n"),
        mg("s k Oq v", "VA 1 s1 k{k} Oq Z X\r\nx\r\n"),
        send("mg {k2} N30 s k\r\n", "HD s0 k{k2} W\r\n"),
        send("mg {k2} N30 s k\r\n", "HD s0 k{k2} Z\r\n"),
    ),
    case("mg-T-R", "KV-MG-050", expiring(100), mg("T1000 R200", HIT), mg("T100 R200", "HD W\r\n")),
    case("mg-R-T", "KV-MG-051", expiring(1000), mg("R200 T100", HIT), mg("R200 T1000", "HD W\r\n")),
    case("mg-R-later", "KV-MG-019", expiring(32), mg("R31", HIT), LATER_ON, mg("R31", "HD W\r\n")),
    case("mg-R-long", "KV-MG-020", expiring(100), mg("R30", HIT), X, mg("R1000000", HIT)),
    case("mg-h", "KV-MG-022", X, mg("h", "HD h0\r\n"), mg("h", "HD h1\r\n"), X, mg("h", "HD h0\r\n")),
    case("mg-h-get", "KV-MG-022", X, hit("{k}", "x"), mg("h u", READ), X, mg("h u", UNREAD)),
    case("mg-h-touch", "KV-MG-022", X, send("touch {k} 100\r\n", "TOUCHED\r\n"), mg("h u", READ)),
    case(
        "mg-h-sum",
        "KV-MG-022 KV-MG-048",
        NUMBER,
        COUNTED,
        mg("h u", UNREAD),
        hit("{k}", "11"),
        COUNTED,
        mg("h u", READ),
    ),
    case("mg-l", "KV-MG-023", X, LATER_ON, mg("l", *seconds(2)), mg("u l", *seconds(2))),
    case(
        "mg-l-get",
        "KV-MG-047",
        X,
        hit("{k}", "x"),
        LATER_ON,
        mg("u l", *seconds(2)),
        hit("{k}", "x"),
        mg("u l", *seconds(0)),
    ),
    case(
        "mg-l-writes",
        "KV-MG-023 KV-MG-048",
        NUMBER,
        store("{k2}", "x"),
        store("{k3}", "x"),
        LATER_ON,
        COUNTED,
        mg("u l", *seconds(0)),
        send("add {k2} 0 0 1\r\ny\r\n", "NOT_STORED\r\n"),
        mg("u l h", *seconds(0, " h0"), key="{k2}"),
        store("{k3}", "y"),
        mg("u l", *seconds(0), key="{k3}"),
    ),
    case("mg-T-below-zero", "KV-MG-042", X, mg("v T-1", "VA 1\r\nx\r\n"), miss("{k}"), mg("v", MISS)),
    case("mg-T-4294967295", "KV-MG-042", X, mg("T4294967295", "HD\r\n"), miss("{k}")),
    case("mg-N-below-zero", "KV-MG-043", mg("v N-1", "VA 0 W\r\n\r\n"), miss("{k}"), mg("v", MISS)),
    case("mg-u", "KV-MG-024", X, mg("u h", "HD h0\r\n"), mg("h", "HD h0\r\n"), mg("u h", "HD h1\r\n")),
)
REFUSED = (
    case("mg-twice", "KV-MG-026", X, mg("v v", DUPLICATE), mg("Oa Ob", DUPLICATE), mg("k q k", DUPLICATE)),
    *(
        case(f"mg-unknown-{flag}", "KV-MG-027", X, mg(flag, UNKNOWN), mg(f"q {flag}", UNKNOWN))
        for flag in ("z", "1", "S", "V")
    ),
    *(case(f"mg-token-{flag}", "KV-MG-028", X, mg(flag, NO_NUMBER)) for flag in ("T", "Tx", "T1x", "N", "Nx", "Rx")),
    case(
        "mg-opaque",
        "KV-MG-029",
        X,
        mg("O{o~31}", "HD O{o~31}\r\n"),
        mg("O{o~32}", "CLIENT_ERROR opaque token too long\r\n"),
    ),
    case("mg-long-key", "KV-MG-030", mg("", BAD_FORMAT, key="{k:251}"), mg("", MISS, key="{k:250}")),
    case(
        "mg-flags",
        "KV-MG-031",
        X,
        mg("c f h k l s t u v O1 P L T0 N0 R0 D1 J1", "VA 1 c<cas> f0 h0 k{k} l0 s1 t-1 O1\r\nx\r\n"),
        mg("c f h k l s t u v O1 P L T0 N0 R0 D1 J1 C1", "CLIENT_ERROR options flags are too long\r\n"),
    ),
    case("mg-no-key", "KV-MG-032", send("mg\r\n", "ERROR\r\n")),
)
TABLES = (
    case(
        "mg-switches",
        "KV-MG-035",
        store("@@{m2}.{k}", "2"),
        store("@@{m1}.{k}", "1"),
        mg("v k", "VA 1 k@@{m2}.{k}\r\n2\r\n", key="@@{m2}.{k}"),
        mg("v", "VA 1\r\n2\r\n"),
    ),
    case("mg-unknown-mapping", "KV-MG-044", mg("v", MISS, key="@@nope.{k}"), shape=ONE),
    case(
        "mg-switch-word",
        "KV-MG-036",
        mg("v", "VA {#w2}\r\n{w2}\r\n", key="@@{m2}"),
        mg("s", "HD s{#w2}\r\n", key="@@{m2}"),
    ),
    case(
        "mg-no-column",
        "KV-MG-037",
        X,
        mg("T9", "CLIENT_ERROR <text>\r\n"),
        mg("T0", HIT),
        mg("N9", "CLIENT_ERROR <text>\r\n", key="{k2}"),
        miss("{k2}"),
        shape=TIMELESS,
    ),
    case(
        "mg-N-row",
        "KV-MG-038",
        mg(f"N{LATER}", "HD W\r\n"),
        sql("SELECT v, f, e FROM {t}", ("", 0, LATER)),
        shape=ONE,
    ),
    case(
        "mg-range",
        "KV-MG-039",
        mg("v", "CLIENT_ERROR <text>\r\n", key="@>{k}"),
        send("me @>{k}\r\n", "CLIENT_ERROR <text>\r\n"),
        shape=ONE,
    ),
    case(
        "mg-mark-sql",
        "KV-MG-040",
        send("set {k} 0 100 1\r\nx\r\n", "STORED\r\n"),
        mg("R200", "HD W\r\n"),
        sql("UPDATE {t} SET v = 'y' WHERE k = '{k}'"),
        mg("v", "VA 1\r\ny\r\n"),
        shape=ONE,
    ),
    case(
        "mg-T-row",
        "KV-MG-041",
        insert("{k}", "'x', NULL, NULL, 0, 'kept'"),
        mg(f"T{LATER}", HIT),
        sql("SELECT v, f, c, e, other FROM {t}", ("x", None, None, LATER, "kept")),
        shape=ONE,
    ),
)
CASES = (*ANSWERS, *WRITES, *REFUSED, *TABLES)
