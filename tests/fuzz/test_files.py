"""Any content of a file that kvref reads is accepted, or rejected with a one-line error; nothing else is raised."""

from __future__ import annotations

import copy
import gzip
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import tomlkit
from click.testing import CliRunner
from helpers import points

from fuzz.record import FULL
from kvref import profiles
from kvref.cli import main
from kvref.errors import KvrefError, SuiteError, printable
from kvref.server.listeners.authentication import read_users
from kvref.server.listeners.listener import listener
from kvref.server.settings import parse, read_file
from kvref_bench import scenario
from kvref_bench.runs import folder, verdict
from kvref_bench.turns import report as turns
from kvref_bench.workload.keys import read_file as read_keys
from kvref_conformance import corpus
from kvref_conformance.case import Setup, Shape, case, eventually, send, send_unanswered, sql
from kvref_conformance.endpoints import probe
from kvref_conformance.errors import CannotJudge
from kvref_conformance.judging import own_deviations
from kvref_conformance.judging.verdict import Verdict
from kvref_conformance.reports import column
from kvref_conformance.steps import Pause
from kvref_conformance.triage import replay_file

REPLACED: Final = 400 if FULL else 60
BROKEN: Final = 200 if FULL else 40
REFUSALS: Final = (KvrefError, CannotJudge, SuiteError)
# Values that stand in the place of another.
ODD: Final[tuple[Any, ...]] = (
    None, True, -1, 10**30, 1e308, "", "x", "\0", "a\nb", "\x1b[2J", "é\u2028", "{k:99999999999}", "{v~99999999999}", [], {}, ["x"], [[]],
    {"x": 1}, [None], "9" * 5000,
)  # fmt: skip
# Files that are not documents, whatever the form.
NONSENSE: Final = (
    b"", b"\n", b"\0", b"\xff\xfe", b"null", b"[]", b"{}", b"1", b'"x"', b"[" * 100_000, b'{"a":' * 100_000, b"[" * 200 + b"]" * 200,
    b"9" * 6000, b'{"a": ' + b"9" * 6000 + b"}", b'{"a": ' + b"9" * 60 + b"}", b'{"kind": "header"}', b'{"a": "\\ud800"}', b"x = " + b"[" * 5000,
    b"x = " + b"9" * 6000, b"x = " + b"9" * 60, b"a." * 5000 + b"a = 1", b"[a." + b"a." * 5000 + b"a]", b"x = {y = " * 2000, b"NaN", b"-",
    b"x = 0000-00-00", b'"\\ud800" = 1', b"\x1f\x8b", b"\x1f\x8b\x08\x00" + b"x" * 40, b"INSERT INTO x VALUES (" + b"(" * 3000,
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Args:
        name: of the file.
        valid: content that is read.
        read: reads a file.
        form: json, lines, toml, or "" for none of them.
    """

    name: str
    valid: bytes
    read: Callable[[Path], object]
    form: str


def failure() -> bytes:
    made = case(
        "fuzz", "KV-CORE-041",
        send("get {k}\r\n", "END\r\n"), send_unanswered("set {k} 0 0 1\r\n"), sql("SELECT 1", (1,)), eventually(send("get {k}\r\n", "END\r\n"), 1.0), Pause(0.1),
        setup=Setup(), shape=Shape("k INT PRIMARY KEY"), settings={"r_batch_size": 1},
    )  # fmt: skip
    seen = Verdict("fuzz", "retrieval", ("KV-CORE-041",), "fails")
    return replay_file.as_json(made, profiles.load("memcached"), seen, {"endpoint": "x:1"}).encode()


def report() -> bytes:
    exchange = {
        "on": "a",
        "sent": "get k\r\n",
        "got": "END\r\n",
        "note": "",
        "written": ["get {k}\r\n", ""],
        "opening": True,
    }
    line = {
        "kind": "verdict",
        "case": "c",
        "chapter": "retrieval",
        "requirements": ["KV-CORE-041"],
        "verdict": "fails",
        "reason": "r",
    }
    header = {
        "kind": "header",
        "format": 1,
        "suite": "1",
        "endpoint": "x:1",
        "version": "1",
        "profile": "kvref",
        "sql": None,
        "database": None,
    }
    footer = {"kind": "footer", "totals": {"fails": 1}, "complaints": ["c"], "defects": [], "exit_code": 1}
    lines = [
        header | {"started": "2026-01-01T00:00:00Z"},
        line | {"duration": 0.1, "text": "t", "conversation": [exchange]},
        footer,
    ]
    return b"".join(json.dumps(each).encode() + b"\n" for each in lines)


TRANSCRIPT: Final = b"""{"id": "x-1", "group": "g", "title": "t", "options": ["--a"], "sql": ["SELECT 1"], "port": {"8.0.33": "closed"}, "steps":
 [{"send": {"on": "a", "packets": ["get {c1}"], "patience": 1.0}, "got": {"8.0.33": "END"}}, {"sql": {"on": "s", "statement": "SELECT 1"}, "cols": [1]}, {"pause": {"seconds": 1}}]}
""".replace(b"\n ", b" ")
CONFIGURATION: Final = b"""
[settings]
maxconns = 10
[[listener]]
address = "127.0.0.1:11211"
auth_file = "users"
mappings = ["a"]
read_only = true
tls_cert = "cert"
tls_key = "key"
"""
DEVIATIONS: Final = b"""
[[deviation]]
case = "get-*"
reason = "r"
profiles = ["kvref"]
until = 2999-01-01
flaky = true
"""
PROFILE: Final = b'profile = "kvref"\n[features]\ncas = false\n'
PAIRS: Final = b'{"version": %d, "rows": []}' % turns.VERSION


def read_configuration(path: Path) -> None:
    """Do with a file what `kvref serve --config` does before it listens."""
    parse([], path, profiles.load("kvref"))
    for table in read_file(path).listeners:
        made = listener(table)
        if made.tls is not None:
            made.tls.context()
        if made.auth_file is not None:
            read_users(made.auth_file)


def read_run(path: Path) -> None:
    folder.read(path.parent)


def scenario_file() -> bytes:
    return (Path(scenario.__file__).parent / "files" / f"{scenario.names()[0]}.toml").read_bytes()


KINDS: Final = {
    "replay": Kind("failure.json", failure(), replay_file.read, "json"),
    "report": Kind("report.jsonl", report(), column.read, "lines"),
    "packed report": Kind("report.jsonl.gz", report(), column.read, "lines"),
    "verdict": Kind("report.jsonl", report(), verdict.read, "lines"),
    "transcript": Kind("t.jsonl", TRANSCRIPT, corpus.read, "lines"),
    "configuration": Kind("kvref.toml", CONFIGURATION, read_configuration, "toml"),
    "users": Kind("users", b"ann:secret\n", read_users, ""),
    "deviations": Kind(
        "own.toml", DEVIATIONS, lambda path: own_deviations.load(path, "kvref", "1", update=True), "toml"
    ),
    "profile": Kind("profile.toml", PROFILE, probe.read, "toml"),
    "pairs": Kind("pairs.json", PAIRS, lambda path: turns.read(path, "rows"), "json"),
    "scenario": Kind("s.toml", scenario_file(), lambda path: scenario.load(str(path), "small"), "toml"),
    "keys": Kind("keys", b"one\ntwo\n", lambda path: read_keys(str(path)), ""),
    "run": Kind("run.json", b"", read_run, "json"),
}


def marks_of(name: str, kind: Kind) -> list[pytest.MarkDecorator]:
    if name == "run":
        return [pytest.mark.programs]  # its description of the machine starts programs
    # The parser of TOML documents takes longer than all others together.
    return [pytest.mark.long] if kind.form == "toml" else []


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, id=name, marks=marks_of(name, kind)) for name, kind in KINDS.items()],
)
def test_a_file_is_read_or_refused_in_one_line(kind: Kind, tmp_path: Path) -> None:
    if kind.name == "run.json":
        points.run(tmp_path, points.point())
        kind = Kind(kind.name, (tmp_path / kind.name).read_bytes(), kind.read, kind.form)
    file = tmp_path / kind.name
    if kind.name != "kvref.toml":  # it names files that are not there
        file.write_bytes(packed(kind, kind.valid))
        kind.read(file)
    for content in contents(kind):
        file.write_bytes(content)
        expect_reading_or_one_line(kind.read, file, content)


def contents(kind: Kind) -> Iterator[bytes]:
    rng = random.Random(17)
    for each in (*NONSENSE, *map(partial(broken, kind.valid, rng), range(BROKEN))):
        yield each
        yield packed(kind, each)
    if kind.form:
        documents = list(replaced(decoded(kind)))
        for each in rng.sample(documents, min(REPLACED, len(documents))):
            if kind.form != "toml" or "null" not in json.dumps(each, default=str):  # TOML has no null
                yield packed(kind, encoded(kind, each))


def expect_reading_or_one_line(read: Callable[[Path], object], path: Path, content: bytes) -> None:
    try:
        read(path)
    except REFUSALS as refusal:
        shown = printable(str(refusal), keep="\n")  # as the command line prints it
        if len(shown.splitlines()) != 1:
            raise AssertionError(f"{shown!r} for {content[:300]!r}") from refusal
    except Exception as error:
        error.add_note(f"content: {content[:600]!r}")
        raise


def packed(kind: Kind, content: bytes) -> bytes:
    return gzip.compress(content) if kind.name.endswith(".gz") else content


def broken(valid: bytes, rng: random.Random, number: int) -> bytes:
    """Return a file cut off, or with bytes that are others."""
    if number % 2:
        return valid[: rng.randrange(len(valid))]
    changed = bytearray(valid)
    for _ in range(rng.randint(1, 5)):
        changed[rng.randrange(len(changed))] = rng.choice(b'\0\xff"[]{}\n=,9-')
    return bytes(changed)


def decoded(kind: Kind) -> Any:
    if kind.form == "toml":
        return tomlkit.parse(kind.valid.decode()).unwrap()
    return [json.loads(line) for line in kind.valid.splitlines()] if kind.form == "lines" else json.loads(kind.valid)


def encoded(kind: Kind, document: Any) -> bytes:
    if kind.form == "toml":
        return tomlkit.dumps(document).encode() if isinstance(document, dict) else b"x"
    if kind.form == "lines" and isinstance(document, list):
        return b"".join(json.dumps(each).encode() + b"\n" for each in document)
    return json.dumps(document).encode()


def replaced(document: Any) -> Iterator[Any]:
    """Return documents with one value that is another, or is missing, and with one name more."""
    for place in places(document):
        for odd in ODD:
            if odd is None and place and isinstance(place[-1], str):
                yield changed(document, place, lambda below, name: below.pop(name))
            yield changed(document, place, lambda below, name, odd=odd: below.__setitem__(name, odd))


def changed(document: Any, place: tuple[Any, ...], change: Callable[[Any, Any], object]) -> Any:
    made = copy.deepcopy(document)
    below = made
    for name in place[:-1]:
        below = below[name]
    change(below, place[-1])
    return made


def places(document: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    below = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for name, value in below:
        yield (*before, name)
        yield from places(value, (*before, name))


DEEP: Final = b"[" * 100_000


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("f.json", DEEP, ["replay", "f.json", "127.0.0.1:1"]),
        ("f.json", failure().replace(b'"steps": [', b'"steps": "x", "more": ['), ["replay", "f.json", "127.0.0.1:1"]),
        ("f.jsonl", DEEP, ["replay", "f.jsonl"]),
        ("report.jsonl", b"9" * 6000, ["matrix", "report.jsonl"]),
        ("report.jsonl.gz", gzip.compress(report())[:-9] + b"x" * 9, ["matrix", "report.jsonl.gz"]),
        ("pairs.json", DEEP, ["bench", "table", "pairs.json"]),
        ("kvref.toml", b"x = " + DEEP, ["serve", "--create", "--store", "sqlite:///new.sqlite", "--config", "kvref.toml"]),
        ("kvref.toml", b'[[listener]]\naddress = "127.0.0.1:0"\nauth_file = "\\u0000"\n', ["serve", "--create", "--store", "sqlite:///new.sqlite", "--config", "kvref.toml"]),
    ],
)  # fmt: skip
def test_a_command_refuses_a_file_in_one_line(
    name: str, content: bytes, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2, done.output
    assert isinstance(done.exception, SystemExit), done.exception
    assert len(done.output.splitlines()) == 1, done.output
