"""What the meta commands have in common: mn, me, keys in base64."""

from __future__ import annotations

from base64 import b64encode

from kvref_conformance.case import Shape, case, send
from kvref_conformance.cases.phrases import OPTIONS, hit, store

ONE = Shape(f"k VARCHAR(32) PRIMARY KEY, v VARCHAR(40), {OPTIONS}")
X = store("{k}", "x")
BAD_FORMAT = "CLIENT_ERROR bad command line format\r\n"
BAD_KEY = "CLIENT_ERROR error decoding key\r\n"
UNKNOWN = "CLIENT_ERROR invalid flag\r\n"
EITHER = "CLIENT_ERROR invalid or duplicate flag\r\n"
DEBUG = "ME {k} exp=%s la=<number> cas=<cas> fetch=%s cls=<number> size=<number>\r\n"


def base64_key(key: bytes) -> str:
    """Return a key in base64."""
    return b64encode(key).decode()


RAW = base64_key(b"\0\1 \r\n\x7f~")
PLAIN = base64_key(b"plain-or-coded")
CASES = (
    case("mn", "KV-META-001", send("mn\r\n", "MN\r\n"), send("mn a b\r\n", "MN\r\n")),
    case(
        "mn-behind", "KV-META-002", X, send("mg {k2} q\r\nmg {k} q k\r\nmd {k2} q\r\nmn\r\n", "HD k{k}\r\nNF\r\nMN\r\n")
    ),
    *(
        case(f"no-command-{word}", "KV-META-003", send(f"{word} {{k}}\r\n", "ERROR\r\n"))
        for word in ("MN", "mx", "MG", "mgs")
    ),
    case("me", "KV-META-004", X, send("me {k}\r\n", DEBUG % ("-1", "no"))),
    case("me-missing", "KV-META-005", send("me {k}\r\n", "EN\r\n")),
    case(
        "me-exp",
        "KV-META-006",
        X,
        send("me {k}\r\n", DEBUG % ("-1", "no")),
        send("ms {k} 1 T100\r\nx\r\n", "HD\r\n"),
        send("me {k}\r\n", (DEBUG % ("-100", "no"), DEBUG % ("-99", "no"))),
    ),
    case(
        "me-fetch",
        "KV-META-007",
        X,
        send("me {k}\r\n", DEBUG % ("-1", "no")),
        send("mg {k}\r\n", "HD\r\n"),
        send("me {k}\r\n", DEBUG % ("-1", "yes")),
    ),
    case(
        "me-malformed",
        "KV-META-008",
        send("me\r\n", BAD_FORMAT),
        send("me {k:251}\r\n", BAD_FORMAT),
        send("me *** b\r\n", BAD_FORMAT),
    ),
    case(
        "base64",
        "KV-META-009 KV-META-010",
        send(f"md {RAW} b\r\n", ("NF\r\n", "HD\r\n")),
        send(f"ms {RAW} 1 b k\r\nx\r\n", f"HD k{RAW} b\r\n"),
        send(f"mg {RAW} b k v\r\n", f"VA 1 k{RAW} b\r\nx\r\n"),
        send(f"mg {RAW} k\r\n", f"EN k{RAW}\r\n"),
        send(f"md {RAW} k b\r\n", f"HD k{RAW} b\r\n"),
        send(f"mg {RAW} b k Oq\r\n", f"EN k{RAW} b Oq\r\n"),
    ),
    case(
        "base64-and-plain",
        "KV-META-011",
        send(f"ms {PLAIN} 1 b\r\nx\r\n", "HD\r\n"),
        hit("plain-or-coded", "x"),
        send("ma plain-or-coded\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
        send("delete plain-or-coded\r\n", "DELETED\r\n"),
        send(f"mg {PLAIN} b\r\n", "EN\r\n"),
    ),
    *(
        case(
            f"no-base64-{number}",
            "KV-META-012 KV-META-018 KV-META-019",
            send(f"mg {word} b\r\n", BAD_KEY),
            send(f"ms {word} 1 b\r\nx\r\nmn\r\n", f"{BAD_KEY}MN\r\n"),
            send(f"md {word} b\r\nma {word} b\r\n", EITHER * 2),
        )
        for number, word in enumerate(("YWI", "***", "Y"))
    ),
    case(
        "base64-switch",
        "KV-META-013",
        send(f"mg {base64_key(b'@@nope.key')} b v k\r\n", f"EN k{base64_key(b'@@nope.key')} b\r\n"),
        send(f"ms {base64_key(b'@@nope.key')} 1 b\r\nx\r\n", "NF\r\n"),
        shape=ONE,
    ),
    case(
        "base64-answered",
        "KV-META-014 KV-META-022",
        store("plain-or-coded", "x"),
        send(f"mg {PLAIN} b k\r\n", f"HD k{PLAIN} b\r\n"),
        send("mg plain-or-coded k\r\n", "HD kplain-or-coded\r\n"),
    ),
    case(
        "later-flags",
        "KV-META-015 KV-META-020",
        X,
        send("mg {k} E1\r\n", UNKNOWN),
        send("ms {k} 1 E5\r\ny\r\n", UNKNOWN),
        send("md {k} x\r\nma {k} E1\r\n", EITHER * 2),
        hit("{k}", "x"),
    ),
    case(
        "later-C-of-mg",
        "KV-META-023",
        X,
        send("mg {k} c\r\n", "HD c<cas a>\r\n"),
        send("mg {k} C{a} v\r\n", "VA 1\r\nx\r\n"),
    ),
    case("later-s-of-ms", "KV-META-024", send("ms {k} 1 s\r\nx\r\n", "HD\r\n"), hit("{k}", "x")),
    case(
        "later-N-of-ms",
        "KV-META-025",
        send("ms {k} 1 MA N60\r\nx\r\nms {k} 1 MP N60\r\nx\r\n", "NS\r\n" * 2),
        send("mg {k}\r\n", "EN\r\n"),
    ),
    case(
        "me-row",
        "KV-META-017 KV-META-021",
        store("{k}", "value"),
        send("me @@{m}.{k}\r\n", "ME @@{m}.{k} exp=-1 la=<number> cas=<cas> fetch=no cls=0 size=<number>\r\n"),
        send("me @@{m}\r\n", "EN\r\n"),
        shape=ONE,
    ),
)
