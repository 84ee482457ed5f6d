"""Fetch a suite of another project, run it against a server, and return the outcome of each test."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from helpers.serving import running
from platformdirs import user_cache_path

from kvref_testbed import targets

HERE = Path(__file__).parent
SUITES: dict[str, dict[str, Any]] = tomllib.loads((HERE / "suites.toml").read_text())
PYTEST = "pytest==8.4.2"
FETCH_SECONDS, RUN_SECONDS, FILE_SECONDS = 600, 1200, 180
TAP = re.compile(r"(not )?ok \d+(?: - )?(.*)")
PLAN = re.compile(r"^1\.\.(\d+)", re.MULTILINE)
MINITEST = re.compile(r"(\S.*#test_.*) = [\d.]+ s = ([.FE])$", re.MULTILINE)


class UnavailableError(Exception):
    """A registry or a tool could not be reached; the text is the reason."""


def _run(words: Sequence[str], cwd: Path, environment: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            words, cwd=cwd, env=os.environ | (environment or {}), capture_output=True, text=True,
            timeout=FETCH_SECONDS, check=False,
        )  # fmt: skip
    except FileNotFoundError as lack:
        raise UnavailableError(f"no program {words[0]}") from lack
    if done.returncode:
        raise UnavailableError(f"{shlex.join(words)} failed: {(done.stderr or done.stdout)[-400:]}")
    return done.stdout


def _pip(folder: Path, suite: dict[str, Any]) -> None:
    pinned = f"{suite['package']}=={suite['version']}"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    _run([*pip, "download", "-q", "--no-deps", "--no-binary", suite["package"], "-d", ".", pinned], folder)
    archive = next(folder.glob("*.tar.gz"))
    _run([*pip, "install", "-q", "--target", "site", PYTEST, str(archive), *suite["needs"]], folder)
    if hashlib.sha256(archive.read_bytes()).hexdigest() != suite["sha256"]:
        raise ValueError(f"{archive.name} is not the archive whose SHA-256 suites.toml has")
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "unpacked", filter="data")
    next((folder / "unpacked").iterdir()).rename(folder / "sources")


def fetch_git(folder: Path, suite: dict[str, Any]) -> None:
    """Fetch the commit of a tag into `sources`; raises UnavailableError, and ValueError for another commit."""
    git = ["git", "-c", "advice.detachedHead=false"]
    _run([*git, "init", "-q", "sources"], folder)
    _run([*git, "fetch", "-q", "--depth", "1", suite["repository"], suite["tag"]], folder / "sources")
    _run([*git, "checkout", "-q", "FETCH_HEAD"], folder / "sources")
    found = _run([*git, "rev-parse", "HEAD"], folder / "sources").strip()
    if found != suite["commit"]:
        raise ValueError(f"{suite['repository']} {suite['tag']} is commit {found}, suites.toml has {suite['commit']}")


def _go(folder: Path, suite: dict[str, Any]) -> None:
    (folder / "go.mod").write_text("module suites\n")
    shown = json.loads(_run(["go", "mod", "download", "-json", f"{suite['module']}@{suite['version']}"], folder))
    if shown["Sum"] != suite["sum"]:
        raise ValueError(f"{suite['module']} has the sum {shown['Sum']}, suites.toml has {suite['sum']}")
    shutil.copytree(shown["Dir"], folder / "sources")
    for path in (folder / "sources", *(folder / "sources").rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)  # The cache of modules is read-only.


def sources(name: str) -> Path:
    """Return the folder of a suite: its sources in `sources`, the packages that it imports in `site`.

    The folder is kept in the user's cache. Raises UnavailableError without the network or a tool, ValueError for
    sources whose checksum is another one.
    """
    suite = SUITES[name]
    key = hashlib.sha256(repr((sys.version_info[:2], sorted(suite.items()), PYTEST)).encode()).hexdigest()[:16]
    folder = user_cache_path("kvref") / "peers" / f"{name}-{key}"
    if folder.exists():
        return folder
    building = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    try:
        {"pip": _pip, "git": fetch_git, "go": _go}[suite["source"]](building, suite)
        if not folder.exists():
            building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return folder


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end this process as an exception for the block, so that every server that it started is stopped."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Groups:
    """Programs, each in a process group that is killed when the program ends, or when its time is over."""

    def __init__(self) -> None:
        self._running: set[int] = set()

    def run(self, words: Sequence[str], cwd: Path, environment: dict[str, str], seconds: float) -> bytes:
        """Return what a program and its children write to stdout and stderr, until it ends or its time is over.

        seconds: after which the group is killed.
        """
        with subprocess.Popen(
            words, cwd=cwd, env=os.environ | environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        ) as process:  # fmt: skip
            self._running.add(process.pid)
            try:
                return process.communicate(timeout=seconds)[0]
            except subprocess.TimeoutExpired:
                self._kill(process.pid)
                return process.communicate()[0]
            finally:
                self._kill(process.pid)
                self._running.discard(process.pid)

    def kill(self) -> None:
        """Kill every group that still runs."""
        for pid in list(self._running):
            self._kill(pid)

    def _kill(self, pid: int) -> None:
        with suppress(ProcessLookupError):  # Nothing of the group is left.
            os.killpg(pid, signal.SIGKILL)


@contextmanager
def server(kind: str) -> Iterator[int]:
    """Start memcached, or `kvref serve` without a store; return its port."""
    if kind == "memcached":
        with targets.running("memcached") as target:
            yield target.port
        return
    words = [sys.executable, "-m", "kvref", "serve", "--listen", "127.0.0.1:0"]
    with tempfile.TemporaryDirectory() as folder, running(words, "", os.environ | {"TMPDIR": folder}) as served:
        yield served.port


def _make_cache(path: Path) -> None:
    """Let kvref add its cache table to a SQLite file."""
    _run([sys.executable, "-m", "kvref", "init", "--cache", "--store", f"sqlite:///{path}"], HERE)


def outcomes(name: str, kind: str, scratch: Path) -> dict[str, bool]:
    """Run a suite against `kvref` or `memcached`: each test that ran and whether it passed."""
    folder, suite = sources(name), SUITES[name]
    tree = scratch / kind
    shutil.copytree(folder / "sources", tree)
    with ended_by_sigterm():
        match suite.get("runner", "python"):
            case "perl":
                return _perl(suite, tree, kind, scratch)
            case "ruby":
                return _ruby(suite, tree, kind, scratch)
            case "go":
                return _go_test(suite, tree, kind, scratch)
            case _:
                return _python(folder, suite, tree, kind)


def _python(folder: Path, suite: dict[str, Any], tree: Path, kind: str) -> dict[str, bool]:
    with server(kind) as port:
        _replace_text(suite, tree, port)
        for path, content in suite.get("files", {}).items():
            (tree / path).write_text(content.replace("{port}", str(port)))
        options = [each.replace("{port}", str(port)) for each in suite.get("options", [])]
        # The configuration of this project and of the suite's is not read: plugins and warnings differ.
        (tree / "of-kvref.ini").write_text("[pytest]\n")
        words = [sys.executable, "-m", "pytest", "-q", "-c", "of-kvref.ini", "-p", "no:cacheprovider"]
        words += ["--junitxml=outcomes.xml", *suite["tests"], *options]
        environment = {"PYTHONPATH": f"{folder / 'site'}{os.pathsep}{tree}"} | suite.get("environment", {})
        shown = Groups().run(words, tree, environment, RUN_SECONDS)
        report = tree / "outcomes.xml"
        assert report.exists(), shown.decode()
    found = {}
    for case in ET.parse(report).iter("testcase"):
        if case.find("skipped") is None:
            test = f"{case.get('classname')}.{case.get('name')}"
            passed = case.find("failure") is None and case.find("error") is None
            found[test] = found.get(test, True) and passed
    return found


def _files(top: Path) -> list[Path]:
    return sorted(top.rglob("*.py")) if top.is_dir() else [top]


def _replace_text(suite: dict[str, Any], tree: Path, port: int) -> None:
    for before, after in suite.get("text", {}).items():
        for path in (path for top in suite["tests"] for path in _files(tree / top)):
            path.write_text(path.read_text().replace(before, after.replace("{port}", str(port))))


def _program(path: Path, kind: str, scratch: Path) -> dict[str, str]:
    """Write a program that takes memcached's options and starts memcached or kvref; return its environment."""
    store = scratch / "cache.sqlite"
    if kind == "memcached":
        native = shutil.which("memcached")
        if native is None:
            raise UnavailableError("no memcached: apt-get install memcached")
        user = "-u nobody " if os.geteuid() == 0 else ""
        path.write_text(f'#!/bin/sh\nexec {native} {user}"$@"\n')
    else:
        _make_cache(store)
        # Its log would stand between the lines of the tests.
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "memcached_debug.py"} "$@" 2>/dev/null\n')
    path.chmod(0o755)
    return {"PEER_STORE": str(store)}


def _go_test(suite: dict[str, Any], tree: Path, kind: str, scratch: Path) -> dict[str, bool]:
    (scratch / "bin").mkdir()
    environment = _program(scratch / "bin" / "memcached", kind, scratch)
    environment |= {"PATH": f"{scratch / 'bin'}{os.pathsep}{os.environ['PATH']}", "GOFLAGS": "-mod=mod"}
    with server(kind) as port:
        _replace_text(suite, tree, port)
        shown = Groups().run(["go", "test", "-count=1", "-json", *suite["packages"]], tree, environment, RUN_SECONDS)
    events = [json.loads(line) for line in shown.splitlines() if line.startswith(b"{")]
    return {
        each["Test"]: each["Action"] == "pass"
        for each in events
        if "Test" in each and each["Action"] in ("pass", "fail")
    }


def _ruby(suite: dict[str, Any], tree: Path, kind: str, scratch: Path) -> dict[str, bool]:
    if shutil.which("ruby") is None:
        raise UnavailableError("no ruby: apt-get install ruby ruby-minitest ruby-rack ruby-connection-pool")
    programs, stubs = scratch / "bin", scratch / "stubs" / "bundler"
    programs.mkdir()
    stubs.mkdir(parents=True)
    (stubs / "setup.rb").write_text("require 'dalli/version'\n")  # Debian's packages are used, no bundle.
    environment = _program(programs / "memcached", kind, scratch)
    environment["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    _replace_text(suite, tree, 0)
    skipped = {tree / each for each in suite["skip"]}
    files = sorted(path for path in (tree / "test").rglob("test_*.rb") if path not in skipped)
    found: dict[str, bool] = {}
    groups = Groups()
    for file in files:  # They use the same ports.
        words = ["ruby", f"-I{stubs.parent}", "-Ilib", "-Itest", str(file), "--verbose", "--seed", "1"]
        shown = groups.run(words, tree, environment, FILE_SECONDS).decode(errors="replace")
        for test, result in MINITEST.findall(shown):
            found[f"{file.name}: {re.sub(r'#test_[0-9]+_', ' ', test)}"] = result == "."
        found[f"{file.name}: (runs to its end)"] = re.search(r"\d+ runs, .* skips", shown) is not None
    return found


def _perl(suite: dict[str, Any], tree: Path, kind: str, scratch: Path) -> dict[str, bool]:
    timed = tree / "timedrun"
    timed.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    timed.chmod(0o755)
    environment = _program(tree / "memcached-debug", kind, scratch)
    # Only a debug build has the command that moves the clock. The clock of the release may be a second late.
    module = tree / "t" / "lib" / "MemcachedTest.pm"
    text = module.read_text().replace('print $sock "debugtime $move\\r\\n";\n    <$sock>;', "sleep($move + 1);")
    # The packaged build lacks that option. Both servers listen on TCP.
    text = text.replace('$args .= " -o relaxed_privileges";', "").replace("if $output =~ /unix-socket/i", "if 0")
    module.write_text(text)
    files = sorted(path for path in (tree / "t").glob("*.t") if path.name not in suite["skip"])
    groups = Groups()
    with ThreadPoolExecutor(4) as pool:
        found: dict[str, bool] = {}
        try:
            for part in pool.map(lambda file: tap(file, tree, environment, groups), files):
                found |= part
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            groups.kill()
            raise
    return found


def tap(file: Path, tree: Path, environment: dict[str, str], groups: Groups) -> dict[str, bool]:
    """Run a Perl file; a test is its file and description, and a further one is that the file came to its end."""
    words = ["perl", "-I", str(tree / "t" / "lib"), str(file)]
    shown = groups.run(words, tree, environment, FILE_SECONDS).decode("latin-1")
    plan = PLAN.search(shown)
    found: dict[str, bool] = {}
    ran = 0
    for wrong, description in (match.groups() for match in map(TAP.match, shown.splitlines()) if match):
        ran += 1
        test = f"{file.name}: {re.sub(r'0x[0-9a-f]+|/tmp/[^ ]*', '…', description)[:80] or ran}"
        found[test] = found.get(test, True) and not wrong
    if plan is not None and plan[1] == "0":
        return {}  # The file skips itself.
    found[f"{file.name}: (runs to its end)"] = plan is not None and ran == int(plan[1])
    return found
