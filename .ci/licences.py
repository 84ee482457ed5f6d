"""Write LICENCES.md: the licence of each package of the lock, as its installed metadata states it."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).parent
FILE = HERE / "LICENCES.md"
# What older metadata says, by classifier or in words; `BSD` of two or three clauses.
SPELLED = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}

# Nothing is in their metadata; the sources of each begin with it.
UNSTATED = {"atheris": "Apache-2.0"}


def pins(lock: str = "dev") -> list[Requirement]:
    """Return what a lock says, each package with its version and the systems that it is for."""
    lines = (HERE / f"requirements-{lock}.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line.rstrip(" \\")) for line in lines if re.match(r"[a-z]", line)]


def stated(name: str) -> str:
    """Return the licence of an installed package, as SPDX names it.

    Raises:
        PackageNotFoundError: it is not installed.
    """
    metadata = distribution(name).metadata
    if name in UNSTATED:
        return UNSTATED[name]
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    classifiers = [each.partition(" :: OSI Approved :: ")[2] for each in metadata.get_all("Classifier", [])]
    text = metadata["License"].partition("\n")[0] if "License" in metadata else ""
    return " AND ".join(SPELLED.get(each, each) for each in classifiers if each) or SPELLED.get(text, text)


def serving() -> set[str]:
    """Return the names of what `pip install kvref` installs beside kvref, by the metadata of what is installed."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: set[str] = set()
    waiting: list[str] = list(project["dependencies"])
    while waiting:
        wanted = Requirement(waiting.pop())
        name = canonicalize_name(wanted.name)
        if name not in found and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
            found.add(name)
            waiting += distribution(name).requires or []
    return found


def page() -> str:
    """Return the text of LICENCES.md."""
    to_serve, rows, elsewhere = serving(), dict[str, str](), set[str]()
    for pin in pins():
        if pin.marker is not None and not pin.marker.evaluate():
            elsewhere.add(pin.name)
            continue
        use = "serving" if canonicalize_name(pin.name) in to_serve else "development, extras"
        rows[pin.name] = f"| {pin.name} | {stated(pin.name)} | {use} |"
    return "\n".join(
        [
            "# Licences",
            "",
            "Of each package in `.ci/requirements-dev.txt`, as its metadata states it; written by `.ci/lock licences`.",
            "kvref itself is under Apache-2.0 and contains none of them. `serving`: what `pip install kvref` brings.",
            "",
            "| package | licence | for |",
            "|---|---|---|",
            *rows.values(),
            "",
            f"For other systems, not looked at: {', '.join(sorted(elsewhere - set(rows)))}.",
            "",
        ]
    )


if __name__ == "__main__":
    try:
        FILE.write_text(page(), encoding="utf-8")
    except PackageNotFoundError as missing:
        raise SystemExit(f"{missing.name} is locked and not installed: run `bash .ci/setup dev`") from missing
