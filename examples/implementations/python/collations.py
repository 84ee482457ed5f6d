"""Collations of MySQL under their own names, for SQLite connections."""

import sqlite3
import unicodedata
from collections.abc import Callable

SWEDISH = {"å": "\uf001", "ä": "\uf002", "æ": "\uf002", "ö": "\uf003", "ø": "\uf003", "ü": "y"}


def _bare(text: str) -> str:
    """Remove accents and letter case, with expansions."""
    plain = unicodedata.normalize("NFD", text)
    return "".join(c for c in plain if unicodedata.category(c) != "Mn").casefold()


def _general(text: str) -> str:
    """Reduce every character to one base letter, without expansions."""
    letters = []
    for char in text:
        base = unicodedata.normalize("NFD", char)[0]
        upper = "S" if base == "ß" else base.upper()
        letters.append(upper if len(upper) == 1 else base)
    return "".join(letters)


def _swedish(text: str) -> str:
    """Compare as latin1_swedish_ci does."""
    lowers = [char.lower() for char in text]
    return "".join(SWEDISH.get(lower, unicodedata.normalize("NFD", lower)[0]) for lower in lowers)


def _folded(text: str) -> str:
    """Remove letter case and keep accents."""
    return unicodedata.normalize("NFC", text).casefold()


def _same(text: str) -> str:
    """Compare code points."""
    return text


def sort_key(name: str) -> Callable[[str], str]:
    """Find the function that maps a text to what the collation compares."""
    lower = name.lower()
    if lower.endswith(("bin", "_cs")) or lower == "binary":
        fold = _same
    elif "_as_" in lower or lower == "latin1_general_ci":
        fold = _folded
    elif lower == "latin1_swedish_ci":
        fold = _swedish
    elif "general_ci" in lower or lower == "latin1_german1_ci":
        fold = _general
    else:
        fold = _bare
    if "0900" in lower or "nopad" in lower or lower == "binary":
        return fold
    return lambda text: fold(text.rstrip(" "))


def register(connection: sqlite3.Connection, name: str) -> None:
    """Register one collation on a connection."""
    key = sort_key(name)

    def compare(left: str, right: str) -> int:
        """Compare two texts."""
        one, two = key(left), key(right)
        return (one > two) - (one < two)

    connection.create_collation(name, compare)
