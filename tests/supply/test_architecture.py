"""The shape of the project holds, and breaks visibly when it is broken."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]

FUTURE = "from __future__ import annotations"
VIOLATIONS = [
    ("kvref/protocol/text.py", "import kvref.engine.mapping", "each package imports only the packages below it"),
    ("kvref/engine/mapping.py", "import time", "protocol, engine and profiles do no I/O and read no clock"),
    (
        "conformance/kvref_conformance/__init__.py",
        "import kvref.protocol.text",
        "the conformance suite imports no product code but data",
    ),
    (
        "conformance/kvref_conformance/translation/ddl.py",
        "import kvref.doctor.report",
        "the conformance suite imports no product code but data",
    ),
    ("kvref/storage/mysql/rows.py", "import kvref.storage.sqlite.rows", "stores do not import each other"),
    (
        "kvref/server/executors/mysql/pool.py",
        "import kvref.server.executors.sqlite.group_commit",
        "executors do not import each other",
    ),
    ("kvref/server/server.py", "import kvref_conformance", "no import leaves kvref"),
    ("kvref/doctor/report.py", "import kvref_conformance", "no import leaves kvref"),
    ("kvref/cli/doctor.py", "import kvref_conformance", "no import leaves kvref"),
    ("kvref/cli/__init__.py", "import kvref_conformance", "no import leaves kvref"),
    ("kvref/cli/spec.py", "import kvref_conformance.cases", "no import leaves kvref"),
    ("kvref/cli/serve.py", "import kvref_bench.cli", "no import leaves kvref"),
    ("kvref/server/server.py", "import kvref_testbed.targets", "no import leaves kvref"),
    (
        "conformance/kvref_testbed/mutants/meta.py",
        "import kvref_conformance.cases",
        "the testbed imports no suite, no benchmark and no command",
    ),
]


def test_contracts_break_when_violated(tmp_path: Path) -> None:
    """Each of the imports is reported under its contract, and the tree without them breaks none."""
    for folder in ("kvref", "conformance", "bench"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert _broken(tmp_path) == {}
    wanted: dict[str, set[str]] = defaultdict(set)
    for file, line, contract in VIOLATIONS:
        source = tmp_path / file
        text = source.read_text().replace(f"{FUTURE}\n", f"{FUTURE}\n{line}\n", 1)
        assert line in text
        source.write_text(text)
        module = file.removesuffix(".py").removesuffix("/__init__").removeprefix("conformance/").replace("/", ".")
        wanted[contract].add(f"{module} -> {line.removeprefix('import ')}")
    found = _broken(tmp_path)
    missing = {
        (contract, each) for contract, imports in wanted.items() for each in imports - found.get(contract, set())
    }
    assert missing == set()


def _broken(folder: Path) -> dict[str, set[str]]:
    """Return the imports that break each contract in a copy of the tree."""
    # In a process of its own, with the copy in front of the installed packages.
    path = ":".join(str(folder / name) for name in ("", "conformance", "bench"))
    result = subprocess.run(
        [sys.executable, "-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"],
        cwd=folder, env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "COLUMNS": "300"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    broken = re.findall(r"^(.*) BROKEN", result.stdout, re.MULTILINE)
    assert result.returncode == bool(broken), result.stdout + result.stderr
    parts = (
        re.split(rf"^({'|'.join(map(re.escape, broken))})\n-+\n", result.stdout, flags=re.MULTILINE) if broken else []
    )
    return {name: set(re.findall(r"\S+ -> \S+", text)) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _cycles(graph: grimp.ImportGraph) -> list[list[str]]:
    """Return the strongly connected components of more than one module (Tarjan)."""
    found: list[list[str]] = []
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for imported in graph.find_modules_directly_imported_by(module):
            if imported not in order:
                visit(imported)
            if imported in stack:
                low[module] = min(low[module], low[imported])
        if low[module] == order[module]:
            members = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(members) > 1:
                found.append(sorted(members))

    for module in graph.modules:
        if module not in order:
            visit(module)
    return found


def test_no_import_cycle_type_checking_imports_included() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
    graph = grimp.build_graph(*packages, cache_dir=None)
    assert _cycles(graph) == []


def test_code_asks_facts_and_never_profile_names() -> None:
    for room in ("protocol", "engine", "storage", "server"):
        paths = list((ROOT / "kvref" / room).rglob("*.py"))
        assert paths, room
        for path in paths:
            strings = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
            assert not {"mysql-5.6", "mysql-8.0", "memcached"} & set(map(str, strings)), path


def test_the_suite_may_import_data_and_what_has_no_rule() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [contract] = [each for each in contracts if each.get("source_modules") == ["kvref_conformance"]]
    rooms = {
        path.stem for path in (ROOT / "kvref").iterdir() if path.suffix in {"", ".py"} and path.stem[0] not in "._"
    }
    allowed = rooms - {name.removeprefix("kvref.") for name in contract["forbidden_modules"]}
    assert allowed == {"profiles", "collations", "specification", "errors", "documents", "addresses"}


def test_no_text_in_kvref_names_a_module_of_another_distribution() -> None:
    # What import contracts do not see: importlib.import_module and `python -m`.
    module = re.compile(r"kvref_(testbed|conformance|conformance_cli|bench)([.:]\w+)*")
    for path in (ROOT / "kvref").rglob("*.py"):
        strings = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
        assert [text for text in strings if isinstance(text, str) and module.fullmatch(text)] == [], path


def test_the_core_needs_few_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [requirement.split(">")[0] for requirement in project["dependencies"]] == ["click", "rich", "uvloop"]
