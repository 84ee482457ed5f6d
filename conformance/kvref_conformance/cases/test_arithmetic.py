"""incr and decr: results, limits of the numbers, what is not a number, what stays as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref_conformance.case import case, send

if TYPE_CHECKING:
    from kvref_conformance.steps import Send

NOT_A_NUMBER = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
BAD_AMOUNT = "CLIENT_ERROR invalid numeric delta argument\r\n"


def store(text: str) -> Send:
    """Store a text under {k} with flags 4."""
    return send(f"set {{k}} 4 0 {len(text)}\r\n{text}\r\n", "STORED\r\n")


def hit(text: str) -> Send:
    """Get {k} and want that text with flags 4."""
    return send("get {k}\r\n", f"VALUE {{k}} 4 {len(text)}\r\n{text}\r\nEND\r\n")


def stored_number(number: int) -> Send:
    """Want that number to be what is stored, whether it is padded or not."""
    return send("incr {k} 0\r\n", f"{number}\r\n")


CASES = (
    case("incr", "KV-ARITH-001 KV-ARITH-005", store("10"), send("incr {k} 5\r\n", "15\r\n"), hit("15")),
    case("incr-longer", "KV-ARITH-001 KV-ARITH-005", store("99"), send("incr {k} 1\r\n", "100\r\n"), hit("100")),
    case("decr", "KV-ARITH-002", store("15"), send("decr {k} 5\r\n", "10\r\n"), hit("10")),
    case("decr-below-zero", "KV-ARITH-003", store("7"), send("decr {k} 8\r\n", "0\r\n"), hit("0")),
    case("decr-wraps-twice", "KV-ARITH-004", store("3"), send("decr {k} 18446744073709551615\r\n", "0\r\n"), hit("0")),
    *(
        case(
            f"decr-of-{amount}",
            "KV-ARITH-004",
            store("100"),
            send(f"decr {{k}} {amount}\r\n", "0\r\n"),
            stored_number(0),
        )
        for amount in (1 << 31, (1 << 32) + 50, (1 << 63) - 1)
    ),
    case(
        "decr-of-2-63",
        "KV-ARITH-004",
        store("9223372036854775808"),
        send("decr {k} 9223372036854775808\r\n", "0\r\n"),
        stored_number(0),
    ),
    case(
        "decr-shorter",
        "KV-ARITH-006",
        store("10"),
        send("decr {k} 1\r\n", "9\r\n"),
        send("get {k}\r\n", "VALUE {k} 4 1\r\n9\r\nEND\r\n"),
        send("incr {k} 1\r\n", "10\r\n"),
    ),
    case(
        "decr-shorter-padded",
        "KV-ARITH-047",
        store("10"),
        send("decr {k} 1\r\n", "9\r\n"),
        send("get {k}\r\n", "VALUE {k} 4 2\r\n9 \r\nEND\r\n"),
        send("incr {k} 1\r\n", "10\r\n"),
    ),
    case("incr-missing", "KV-ARITH-007", send("incr {k} 1\r\n", "NOT_FOUND\r\n"), send("get {k}\r\n", "END\r\n")),
    case("decr-missing", "KV-ARITH-007", send("decr {k} 1\r\n", "NOT_FOUND\r\n"), send("get {k}\r\n", "END\r\n")),
    case(
        "incr-beyond-63-bits",
        "KV-ARITH-008",
        store("9223372036854775807"),
        send("incr {k} 1\r\n", "9223372036854775808\r\n"),
        hit("9223372036854775808"),
    ),
    case(
        "incr-by-the-largest",
        "KV-ARITH-008",
        store("0"),
        send("incr {k} 18446744073709551615\r\n", "18446744073709551615\r\n"),
        stored_number((1 << 64) - 1),
    ),
    case(
        "incr-wraps", "KV-ARITH-009", store("18446744073709551614"), send("incr {k} 3\r\n", "1\r\n"), stored_number(1)
    ),
    case(
        "incr-keeps-flags",
        "KV-ARITH-010",
        store("1"),
        send("incr {k} 1\r\n", "2\r\n"),
        hit("2"),
        send("decr {k} 1\r\n", "1\r\n"),
        hit("1"),
    ),
    case(
        "incr-changes-the-number",
        "KV-ARITH-011",
        store("1"),
        send("gets {k}\r\n", "VALUE {k} 4 1 <cas a>\r\n1\r\nEND\r\n"),
        send("incr {k} 1\r\n", "2\r\n"),
        send("gets {k}\r\n", "VALUE {k} 4 1 <new cas b>\r\n2\r\nEND\r\n"),
        send("cas {k} 0 0 1 {a}\r\nx\r\n", "EXISTS\r\n"),
    ),
    *(
        case(f"amount-{name}", "KV-ARITH-012", store("5"), send(f"incr {{k}} {amount}\r\n", BAD_AMOUNT), hit("5"))
        for name, amount in (
            ("negative", "-1"),
            ("text", "abc"),
            ("hex", "0x10"),
            ("fraction", "1.5"),
            ("tail", "5x"),
            ("beyond-64-bits", "18446744073709551616"),
        )
    ),
    case(
        "amount-modulo",
        "KV-ARITH-012",
        store("5"),
        send("incr {k} -9223372036854775808\r\n", BAD_AMOUNT),
        send("incr {k} -18446744073709551616\r\n", BAD_AMOUNT),
        send("incr {k} -18446744073709551615\r\n", "6\r\n"),
    ),
    case(
        "amount-missing",
        "KV-ARITH-013",
        store("5"),
        send("incr {k}\r\n", "ERROR\r\n"),
        send("decr {k}\r\n", "ERROR\r\n"),
        hit("5"),
    ),
    case("amount-and-a-word", "KV-ARITH-014", store("5"), send("incr {k} 1 2\r\n", "6\r\n"), stored_number(6)),
    case("amount-zero", "KV-ARITH-015", store("5"), send("incr {k} 0\r\n", "5\r\n"), send("decr {k} 0\r\n", "5\r\n")),
    case("amount-plus", "KV-ARITH-018", store("5"), send("incr {k} +5\r\n", "10\r\n"), stored_number(10)),
    *(
        case(f"no-number-{name}", "KV-ARITH-016", store(text), send("incr {k} 1\r\n", NOT_A_NUMBER), hit(text))
        for name, text in (("text", "HELLO"), ("tail", "12ab"), ("empty", ""), ("negative", "-5"), ("fraction", "1.5"))
    ),
    case("no-number-decr", "KV-ARITH-016", store("HELLO"), send("decr {k} 1\r\n", NOT_A_NUMBER), hit("HELLO")),
    case(
        "number-beyond-64-bits",
        "KV-ARITH-017",
        store("18446744073709551616"),
        send("incr {k} 1\r\n", NOT_A_NUMBER),
        hit("18446744073709551616"),
    ),
    *(
        case(
            f"large-amount-{amount}",
            "KV-ARITH-025",
            store("1000"),
            send(f"incr {{k}} {amount}\r\n", f"{1000 + amount}\r\n"),
            stored_number(1000 + amount),
        )
        for amount in (1 << 31, 1 << 32, (1 << 32) + 5)
    ),
    *(
        case(
            f"decr-of-a-large-number-{number}",
            "KV-ARITH-026",
            store(f"{number}"),
            send("decr {k} 1\r\n", f"{number - 1}\r\n"),
            stored_number(number - 1),
        )
        for number in (1 << 31, 1 << 32, (1 << 63) + 1)
    ),
    case("leading-zeros", "KV-ARITH-037", store("007"), send("incr {k} 1\r\n", "8\r\n"), stored_number(8)),
    case("blanks-behind-the-number", "KV-ARITH-038", store("10 "), send("incr {k} 1\r\n", "11\r\n"), stored_number(11)),
    case(
        "blanks-in-front-of-the-number",
        "KV-ARITH-038",
        store(" 10"),
        send("incr {k} 1\r\n", "11\r\n"),
        stored_number(11),
    ),
)
