"""Counts what tests use of the inside of the server, which a rewrite behind the same replies must be free to change.

The inside is what `kvref.engine`, `kvref.protocol`, `kvref.server` and `kvref.storage` define. A test may import what is
public there. These uses veto a change that no client can see:

private
    A name with an underscore that the inside defines: an attribute, an import, or a string for `setattr` and `put`.
replaced
    Something else in the place of an attribute of the inside: `monkeypatch.setattr`, `patch`, `put`, an assignment.
path
    An import, or a name in a string, of a module that exists because there are several paths for the same command.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PRIVATE: Final = re.compile(r"\b_[A-Za-z]\w*")
INSIDE: Final = re.compile(r"kvref\.(engine|protocol|server|storage)\b")
PATHS: Final = re.compile(
    r"kvref\.(server\.(executors|planners?|scheduler|slots)|engine\.plans|storage\.(\w+\.)?planned_rows"
    r"|storage\.\w+\.write_batch)(\.|$)"
)
# Of named tuples, whose fields are any words: they have no underscore to say that they are private.
PUBLIC: Final = {"_replace", "_asdict", "_fields"}
PATCHES: Final = {"setattr", "delattr", "setitem", "put", "patch", "object"}
METHOD_REPLACED: Final = "ignore[method-assign"  # how the code marks that a method is assigned to


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}


def _in_classes(tree: ast.AST) -> list[ast.AST]:
    return [inner for each in ast.walk(tree) if isinstance(each, ast.ClassDef) for inner in ast.walk(each)]


def defined(tree: ast.AST, in_classes: list[ast.AST] | None = None) -> set[str]:
    """Return the names that a module gives to functions, classes, variables, and attributes of its own objects."""
    names = set[str]()
    for each in ast.walk(tree):
        match each:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
    for each in _in_classes(tree) if in_classes is None else in_classes:
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and _is_self(each.value):
            names.add(each.attr)
    return names


@cache
def of_the_inside() -> tuple[frozenset[str], frozenset[str]]:
    """Return the private names that the inside defines, and the names of its methods."""
    private, methods = set[str](), set[str]()
    for package in ("engine", "protocol", "server", "storage"):
        for path in (ROOT / "kvref" / package).rglob("*.py"):
            tree = ast.parse(path.read_text())
            inner = _in_classes(tree)
            private |= {name for name in defined(tree, inner) if PRIVATE.fullmatch(name)} - PUBLIC
            methods |= {each.name for each in inner if isinstance(each, ast.FunctionDef)}
    return frozenset(private), frozenset(methods)


class _Count(ast.NodeVisitor):
    """Counts the uses of one module.

    Args:
        source: of the module.
    """

    def __init__(self, source: str) -> None:
        tree = ast.parse(source)
        private, self._methods = of_the_inside()
        mentioned = private & set(PRIVATE.findall(source))
        self._private = mentioned - defined(tree) if mentioned else mentioned
        self._lines = source.splitlines()
        self._imported = dict[str, str]()  # full name of each imported name
        self.found = Counter[str]()
        for each in ast.walk(tree):
            if isinstance(each, ast.Import):
                self._imported |= {name.asname or name.name.partition(".")[0]: name.name for name in each.names}
            elif isinstance(each, ast.ImportFrom) and each.module:
                self._imported |= {name.asname or name.name: f"{each.module}.{name.name}" for name in each.names}
        self.visit(tree)

    def _origin(self, node: ast.expr) -> str:
        """Return the full name of what an expression begins with; nothing if it is not imported."""
        while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
            node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Constant):
            return str(node.value)
        return self._imported.get(node.id, "") if isinstance(node, ast.Name) else ""

    def visit_Import(self, node: ast.Import) -> None:
        self.found["path"] += sum(PATHS.match(each.name) is not None for each in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for each in node.names if INSIDE.match(node.module or "") else ():
            full = f"{node.module}.{each.name}"
            self.found["path"] += PATHS.match(full) is not None
            self.found["private"] += any(map(PRIVATE.fullmatch, full.split(".")))

    def visit_Constant(self, node: ast.Constant) -> None:
        self.found["path"] += isinstance(node.value, str) and PATHS.match(node.value) is not None

    def visit_Tuple(self, node: ast.Tuple) -> None:
        names = [each.value for each in node.elts if isinstance(each, ast.Constant)]
        self.found["private"] += sum(each in self._private for each in names)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        origin = self._origin(node.value)
        inside = INSIDE.match(origin) is not None
        self.found["private"] += node.attr in self._private and (inside or not origin)
        if isinstance(node.ctx, ast.Store):
            marked = METHOD_REPLACED in " ".join(self._lines[node.lineno - 1 : node.lineno + 3])
            self.found["replaced"] += inside or (marked and not origin and node.attr in self._methods)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(
                func=ast.Name(id=called) | ast.Attribute(attr=called),
                args=[owner, *words],
            ) if called in PATCHES or called in {"getattr", "hasattr"}:
                name = words[0].value if words and isinstance(words[0], ast.Constant) else None
                origin = self._origin(owner)
                inside = INSIDE.match(origin) is not None
                self.found["private"] += name in self._private and (inside or not origin)
                self.found["replaced"] += called in PATCHES and (inside or (not origin and name in self._methods))
        self.generic_visit(node)


def uses(source: str) -> Counter[str]:
    """Return how often a module uses the inside, by kind."""
    return +_Count(source).found


def all_uses() -> dict[str, dict[str, int]]:
    """Return the uses of each module of the tests, and of the simulation, that has any."""
    paths = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "conformance" / "kvref_testbed" / "simulation").glob("*.py")]
    found = {str(path.relative_to(ROOT)): uses(path.read_text()) for path in sorted(paths)}
    return {name: dict(sorted(counted.items())) for name, counted in found.items() if counted}


if __name__ == "__main__":
    for name, counted in all_uses().items():
        print(f'    "{name}": {counted},'.replace("'", '"'))  # noqa: T201 - the program's output
