"""Read the weights of the collations of a live MySQL 8.0 and write kvref/collations/data.

    python tests/collations/weights_of_mysql.py        # boots the target mysql-8.0-plugin, takes about a minute

WEIGHT_STRING of one character returns its weight on each level; of two letters, it shows whether they count as one.
Weights that follow from the rules of `kvref.collations.weights` are omitted. The files are read by that module, which
describes their format.
"""

from __future__ import annotations

import string
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pymysql

from kvref.collations import names, weights
from kvref_testbed import targets

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

DATA = Path(weights.__file__).parent / "data"
# Every assigned character lies here (Unicode 9.0); behind plane 1 only compatibility ideographs have entries.
CODE_POINTS = [
    point for point in chain(range(0x20000), range(0x2F800, 0x2FA20), range(0xE0000, 0xE0200))
    if not 0xD800 <= point < 0xE000
]  # fmt: skip
BATCH = 4000
# A language with more characters of its own than this moves whole scripts: only its Latin letters are kept.
MAX_TAILORING = 400
# Letters that some language counts as one with its neighbour are among these.
LETTERS = [*string.ascii_letters, *(chr(point) for point in range(0xC0, 0x180))]
SECOND = [*string.ascii_letters, "ž", "Ž", *(chr(point) for point in range(0x300, 0x346))]
Levels = tuple[tuple[int, ...], ...]


def levels(answer: str) -> Levels:
    """Read the hexadecimal answer of WEIGHT_STRING: 16-bit weights, levels separated by 0000."""
    found: list[list[int]] = [[]]
    for position in range(0, len(answer), 4):
        weight = int(answer[position : position + 4], 16)
        if weight or len(answer) == 4:
            found[-1].append(weight)
        else:
            found.append([])
    return tuple(map(tuple, found))


def ask(cursor: Cursor, collation: str, texts: Iterable[str]) -> dict[str, Levels]:
    """Return what each text weighs in a collation; a text that its character set lacks is left out."""
    found: dict[str, Levels] = {}
    charset = collation.partition("_")[0]
    everything = [text for text in texts if charset == "utf8mb4" or max(text) <= "\uffff"]
    for start in range(0, len(everything), BATCH):
        batch = everything[start : start + BATCH]
        cursor.execute(f"CREATE TEMPORARY TABLE weighed (n INT PRIMARY KEY, t VARCHAR(4) CHARACTER SET {charset})")
        rows = ",".join(f"({n}, _utf8mb4 x'{text.encode().hex()}')" for n, text in enumerate(batch))
        cursor.execute(f"INSERT INTO weighed VALUES {rows}")
        cursor.execute(f"SELECT n, HEX(WEIGHT_STRING(t COLLATE {collation})) FROM weighed")
        found.update((batch[n], levels(answer)) for n, answer in cursor.fetchall())
        cursor.execute("DROP TEMPORARY TABLE weighed")
    return found


def ask_bytes(cursor: Cursor, charset: str, collation: str) -> dict[int, tuple[int, ...]]:
    """Return what each byte of a one-byte character set weighs."""
    requests = ", ".join(f"HEX(WEIGHT_STRING(_{charset} x'{byte:02X}' COLLATE {collation}))" for byte in range(256))
    cursor.execute(f"SELECT {requests}")
    return {byte: tuple(bytes.fromhex(answer)) for byte, answer in enumerate(cursor.fetchone() or ())}


def packed(table: dict[str, Levels]) -> bytes:
    """Write a family's table: a line of code points and one for each level, as differences, compressed."""
    points = sorted(map(ord, table))
    lines = [" ".join(str(b - a) for a, b in pairwise((0, *points)))]
    for level in range(len(table[chr(points[0])])):
        last, cells = 0, []
        for point in points:
            steps = []
            for weight in table[chr(point)][level]:
                steps.append(str(weight - last))
                last = weight
            cells.append(" ".join(steps))
        lines.append(",".join(cells))
    return zlib.compress("\n".join(lines).encode(), 9)


def families(cursor: Cursor) -> Iterator[tuple[str, dict[str, Levels]]]:
    """Yield each family's name with its whole table, and write what its rule does not give."""
    for family, rule in weights.RULES.items():
        table = ask(cursor, rule.collation, map(chr, CODE_POINTS))
        odd = {text: w for text, w in table.items() if w != expected(rule, table, text)}
        (DATA / f"{family}.z").write_bytes(packed(odd))
        print(f"{family}: {len(odd)} characters")
        yield family, table


def expected(rule: weights.Rule, table: dict[str, Levels], character: str) -> Levels:
    """Return what a family's rule gives a character that its table lacks."""
    if not (rule.composes and ord(character) in weights.HANGUL):
        return rule.implicit(ord(character))
    letters = [table[letter] for letter in unicodedata.normalize("NFD", character)]
    return tuple(tuple(chain.from_iterable(level)) for level in zip(*letters, strict=True))


def language(cursor: Cursor, collation: str, base: dict[str, Levels]) -> dict[str, Levels]:
    """Return the characters and pairs of letters that a language weighs otherwise than its family."""
    single = {text: w for text, w in ask(cursor, collation, base).items() if w != base[text]}
    if len(single) > MAX_TAILORING:  # whole scripts moved or case turned over: their letters only
        single = {text: w for text, w in single.items() if latin_letter(text)}
    joined = base | single
    pairs = ask(cursor, collation, (a + b for a in LETTERS for b in SECOND))
    double = {
        text: w for text, w in pairs.items()
        if w != tuple(a + b for a, b in zip(joined[text[0]], joined[text[1]], strict=True))
    }  # fmt: skip
    return single | double


def latin_letter(text: str) -> bool:
    return unicodedata.name(text, "").startswith("LATIN ")


def write_tailorings(cursor: Cursor, tables: dict[str, dict[str, Levels]]) -> None:
    """Write tailorings.txt: languages, and the tables of one-byte character sets."""
    lines: list[str] = []
    for key, family, collation in names.TAILORED:
        found = language(cursor, collation, tables[family])
        lines += [f"> {key} {family}", *(line(text, found[text]) for text in sorted(found))]
        print(f"{key}: {len(found)}")
    for charset, collations in names.ONE_BYTE.items():
        for collation in collations:
            found_bytes = ask_bytes(cursor, charset, collation)
            lines.append(f"> {collation} bytes")
            lines += [line(chr(b), (w,)) for b, w in found_bytes.items() if w != (b,)]
    (DATA / "tailorings.txt").write_text("\n".join(lines) + "\n", encoding="ascii")


def line(text: str, found: Levels) -> str:
    """Return a line of tailorings.txt: code points, then levels."""
    shown = "/".join(" ".join(f"{weight:X}" for weight in level) for level in found)
    return f"{' '.join(f'{ord(c):X}' for c in text)}: {shown}"


def main() -> None:
    """Boot the server, query it, write the files."""
    DATA.mkdir(exist_ok=True)
    with targets.running("mysql-8.0-plugin") as target:
        (socket,) = parse_qs(urlsplit(target.sql or "").query)["unix_socket"]
        connection = pymysql.connect(unix_socket=socket, user="root", charset="utf8mb4", database="test")
        with connection, connection.cursor() as cursor:
            write_tailorings(cursor, dict(families(cursor)))


if __name__ == "__main__":
    main()
