"""Find comparisons by identity that a compiled module answers otherwise than an interpreted one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from mypy import build
from mypy.main import process_options
from mypy.nodes import ComparisonExpr
from mypy.types import Instance, NoneType, TupleType, Type, UnionType, get_proper_type

NUMBERS = {"builtins.int", "builtins.float"}


def compared(files: list[str]) -> list[str]:
    """Return the places in files where `is` compares tuples of a fixed length or numbers, which mypyc copies."""
    sources, options = process_options(files)
    options.export_types, options.incremental = True, False
    built = build.build(sources, options)
    assert not built.errors, built.errors
    found = {(each.line, each.column) for each in _comparisons(built) if each.line > 0}
    return [
        f"{file}:{each.lineno}"
        for file in files
        for each in ast.walk(ast.parse(Path(file).read_text()))
        if isinstance(each, ast.Compare) and (each.lineno, each.col_offset) in found
    ]


def _comparisons(built: build.BuildResult) -> Iterator[ComparisonExpr]:
    for each in built.types:
        if isinstance(each, ComparisonExpr):
            for sign, left, right in each.pairwise():
                types = [get_proper_type(built.types[operand]) for operand in (left, right) if operand in built.types]
                none = any(isinstance(one, NoneType) for one in types)
                if sign in ("is", "is not") and not none and any(map(_copied, types)):
                    yield each


def _copied(found: Type) -> bool:
    kind = get_proper_type(found)
    if isinstance(kind, UnionType):
        return any(map(_copied, kind.items))
    if isinstance(kind, TupleType):
        return kind.partial_fallback.type.fullname == "builtins.tuple"  # no NamedTuple
    return isinstance(kind, Instance) and kind.type.fullname in NUMBERS
