"""The setup.py of a build whose hot path is compiled by mypyc: `.ci/build compiled` lays it beside pyproject.toml."""

from __future__ import annotations

from pathlib import Path

from mypyc.build import mypycify
from setuptools import setup


def patterns(file: Path) -> list[str]:
    """Return the patterns of a file, without its comments."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def modules(wanted: list[str]) -> list[str]:
    """Return the files that patterns name, without those behind a `!`; raises ValueError for one that names none."""
    found: set[str] = set()
    for pattern in wanted:
        named = {str(path) for path in Path().glob(pattern.removeprefix("!")) if path.name != "__init__.py"}
        if not named:
            raise ValueError(f"no file {pattern}: correct .ci/compiled.txt")
        found = found - named if pattern.startswith("!") else found | named
    return sorted(found)


if __name__ == "__main__":
    files = modules(patterns(Path("compiled.txt")))
    setup(ext_modules=mypycify(files, group_name="kvref", multi_file=True, opt_level="2", debug_level="0"))
