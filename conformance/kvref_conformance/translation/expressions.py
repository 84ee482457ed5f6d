"""Expressions of MySQL's SQL in SQLite's words: literals, bytes and characters, functions, variables.

What SQLite lacks is called by the names that `session.py` registers on a connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from kvref.collations.charsets import CHARSETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.translation.schema import Column, Table

LARGEST: Final = (1 << 63) - 1  # of SQLite's integers
_DIGITS: Final = len(str(LARGEST))


def to_sqlite(tree: exp.Expr, scope: Sequence[Table] = ()) -> str:
    """Return a parsed expression or query as SQLite's SQL.

    Args:
        tree: parsed as MySQL's; it is changed.
        scope: the tables whose columns it may name: their character sets decide what HEX and LENGTH see.
    """
    return tree.transform(_rewritten, tuple(scope), copy=False).sql(dialect="sqlite")


def stored(value: exp.Expr, column: Column) -> exp.Expr:
    """Return an expression with the conversion that MySQL makes when it assigns it to a column."""
    if isinstance(value, exp.Null) and column.null_is_now and not column.nullable:
        return exp.CurrentTimestamp()
    if isinstance(value, exp.Null) or column.generated is not None:
        return value
    if column.holds_bytes:
        return _as_bytes(value, column)
    if isinstance(value, exp.HexString) and column.charset is not None:
        return _text(bytes.fromhex(value.name), column.charset)
    if isinstance(value, exp.Literal) and value.is_string:
        if column.type == "BIGINT" and value.name.isdigit():
            return exp.Literal.number(value.name)  # a text of so many digits would become a real number
        if column.type == "CHAR":
            return exp.Literal.string(value.name.rstrip(" "))  # padding is not part of the value
    return value


def selected(select: exp.Select, scope: Sequence[Table]) -> None:
    """Give the columns of a SELECT's list as MySQL shows them, where SQLite would show what is stored.

    Args:
        select: its list is changed; `*` becomes the columns of the one table in scope.
        scope: the tables it reads.
    """
    items: list[exp.Expr] = []
    for item in select.expressions:
        if isinstance(item, exp.Star) and len(scope) == 1:
            items += [_shown(exp.column(column.name, quoted=True), tuple(scope)) for column in scope[0].columns]
        else:
            items.append(_shown(item, tuple(scope)))
    select.set("expressions", items)


def _shown(item: exp.Expr, scope: tuple[Table, ...]) -> exp.Expr:
    column = _column(item, scope)
    if column is None:
        return item
    _, _, arguments = column.declared.strip('"').rstrip(")").partition("(")
    match column.type:
        case "DECIMAL":
            places = arguments.partition(",")[2].strip() or "0"
            return _call("printf", exp.Literal.string(f"%.{places}f"), item)
        case "ENUM":
            return _call("member", item)
        case "SET":
            return _call("members", item, exp.Literal.string(arguments.replace("'", "")))
        case _:
            return item


def _as_bytes(value: exp.Expr, column: Column) -> exp.Expr:
    if isinstance(value, exp.Literal) and value.is_string:
        value = exp.HexString(this=value.name.encode().hex())
    if isinstance(value, exp.HexString):
        width = int(column.declared.partition("(")[2].rstrip(")") or 0) if column.type == "BINARY" else 0
        return exp.HexString(this=bytes.fromhex(value.name).ljust(width, b"\0").hex())
    return exp.Cast(this=value, to=exp.DataType.build("BLOB"))


def _rewritten(node: exp.Expr, scope: tuple[Table, ...]) -> exp.Expr:
    match node:
        case exp.Anonymous(name="VALUES") if len(node.expressions) == 1:
            return exp.column(node.expressions[0].name, table="excluded")  # of ON DUPLICATE KEY UPDATE
        case exp.Left() | exp.Right():
            text, length = _again(node.this, scope), _again(node.expression, scope)
            if isinstance(node, exp.Right):
                return _call("substr", text, exp.Neg(this=length))
            return _call("substr", text, exp.Literal.number(1), length)
        case exp.Hex():
            return _call("mysql_hex", _bytes_of(node.this, scope))
        case exp.Length() if node.args.get("binary"):
            return _call("octet_length", _bytes_of(node.this, scope))
        case exp.Sub() if any(_is_unsigned(side, scope) for side in (node.this, node.expression)):
            # MySQL fails where the difference is negative.
            return _call("unsigned", exp.Sub(this=_again(node.this, scope), expression=_again(node.expression, scope)))
        case exp.Parameter():
            return _call("user_variable", exp.Literal.string(node.name))
        case _:
            return _constant(node)


def _constant(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.Introducer() if isinstance(node.expression, exp.HexString):
            return _text(bytes.fromhex(node.expression.name), node.name.removeprefix("_"))
        case exp.Introducer(expression=exp.Expr() as inner):
            return inner
        case exp.Cast(this=exp.Expr() as inner) if node.to.this is exp.DataType.Type.CHARACTER_SET:
            charset = node.to.args["kind"].name
            return _text(bytes.fromhex(inner.name), charset) if isinstance(inner, exp.HexString) else inner
        case exp.Neg(this=exp.Literal(name=digits)) if digits == str(LARGEST + 1):
            return node.copy()  # SQLite reads the smallest integer right only with its sign
        case exp.Literal() if not node.is_string and node.name.isdigit() and _exceeds(node.name):
            return exp.HexString(this=node.name.zfill(20).encode().hex())  # so that they sort as numbers
        case _:
            return node


def _exceeds(digits: str) -> bool:
    """Return whether a number is larger than SQLite's integers; Python reads no integer of any length."""
    digits = digits.lstrip("0")
    return len(digits) > _DIGITS or (len(digits) == _DIGITS and int(digits) > LARGEST)


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _column(node: exp.Expr, scope: tuple[Table, ...]) -> Column | None:
    if not isinstance(node, exp.Column):
        return None
    return next((column for table in scope if (column := table.column(node.name))), None)


def _is_unsigned(node: exp.Expr, scope: tuple[Table, ...]) -> bool:
    column = _column(node, scope)
    return column is not None and column.declared.endswith(" UNSIGNED")


def _bytes_of(node: exp.Expr, scope: tuple[Table, ...]) -> exp.Expr:
    """Wrap a column whose character set is not UTF-8 so that its bytes are seen."""
    column = _column(node, scope)
    if column is not None and column.charset is not None and not column.charset.startswith("utf8"):
        return _call("to_bytes", node.copy(), exp.Literal.string(column.charset))
    return _again(node, scope)


def _again(node: exp.Expr, scope: tuple[Table, ...]) -> exp.Expr:
    """Rewrite a part of a node that was replaced: the walk does not go on into it."""
    return node.copy().transform(_rewritten, scope, copy=False)


def _text(data: bytes, charset: str) -> exp.Expr:
    """Return bytes of a character set as a text literal; malformed ones stay bytes."""
    try:
        return exp.Literal.string(CHARSETS[charset.lower()].decode(data))
    except UnicodeDecodeError:
        return exp.HexString(this=data.hex())
