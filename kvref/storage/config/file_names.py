"""Names of tables as the plugin writes them: InnoDB's, which are those of the table's files."""

from __future__ import annotations

import re
from typing import Final

# These characters stand for themselves, any other is @ and four lower-case digits (cont-033, 036..041).
_NAME: Final = re.compile(r"(?:[0-9A-Za-z_]|@[0-9a-f]{4})+")
_PLAIN: Final = re.compile(r"[0-9A-Za-z_]")
_CODED: Final = re.compile(r"@([0-9a-f]{4})")
_SEPARATOR: Final = re.compile(r"[/\\]")
_PARTITION: Final = re.compile(r"#[Pp]#")
# Letters whose code is @ and two characters of a table of MySQL's: four digits are never their file's name.
_SHORT: Final = (
    ("\u00c0", "\u05ff"),
    ("\u1e00", "\u1fff"),
    ("\u2160", "\u217f"),
    ("\u24b0", "\u24e9"),
    ("\uff20", "\uff5f"),
)


def file_names(schema: str, table: str, *, canonical: bool) -> tuple[str, str]:
    """Return the names that InnoDB looks for: of the path `schema/table` the last two parts, wherever they stand.

    Args:
        schema: as `containers` has it.
        table: the same; both may hold a path (`ib_normalize_table_name` in api0api.cc, path-001).
        canonical: a partition's suffix, `t#P#p0`, belongs to the name; otherwise the table without it is meant
            (path-002).
    """
    schema, table = _SEPARATOR.split(f"{schema}/{table}")[-2:]
    return schema, table if canonical else _PARTITION.split(table)[0]


def sql_name(name: str, *, canonical: bool) -> str | None:
    """Return the name SQL has for a table or schema, None where no file is called so.

    Args:
        name: as `containers` has it: `t@002dx` is SQL's `t-x`.
        canonical: only the spelling that the file has counts, not another code of the same characters (cont-037).
    """
    if not _NAME.fullmatch(name) or (canonical and any(map(_never_coded, _CODED.findall(name)))):
        return None
    return _CODED.sub(lambda code: chr(int(code[1], 16)), name)


def _never_coded(digits: str) -> bool:
    character = chr(int(digits, 16))
    return bool(_PLAIN.fullmatch(character)) or any(low <= character <= high for low, high in _SHORT)
