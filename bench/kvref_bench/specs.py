"""The servers of a command line: [NAME=]VALUE words of several options, which belong together by names."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kvref.addresses import parse_address
from kvref.errors import choices
from kvref_bench.errors import BenchError
from kvref_bench.peers import PeerSpec, sqlite_tables
from kvref_bench.runs import verdict
from kvref_bench.sql import login
from kvref_testbed import targets

if TYPE_CHECKING:
    from collections.abc import Sequence

OPTIONS: Final = ("endpoint", "target", "sql", "reload", "report", "allow_destructive")
_NAMED: Final = re.compile(r"([A-Za-z0-9][\w.+-]*)=(.+)", re.DOTALL)


def read(*, allow_destructive: bool = False, **given: Sequence[str]) -> tuple[PeerSpec, ...]:
    """Put together what is said of each server.

    A word of --sql, --reload or --report that has no name belongs to the only server there is; a DSN with a
    name that no endpoint has is a separate server, and so is one without a name where there is no endpoint.

    Args:
        allow_destructive: of all servers. given: the words of each option of OPTIONS, as given.

    Raises:
        BenchError: no server, two of one name, an unknown target, a word that could belong to several, no DSN, or no
            report.
    """
    specs = [
        PeerSpec(endpoint=_address(address), name=name) for name, address in map(_split, given.get("endpoint", ()))
    ]
    for name, target in map(_split, given.get("target", ())):
        if target not in targets.names():
            raise BenchError(f"unknown target {target!r}{choices(target, targets.names())}")
        specs.append(PeerSpec(endpoint=target, name=name or target))
    specs = _with_sql(specs, given.get("sql", ()), endpoints=len(given.get("endpoint", ())))
    if not specs:
        raise BenchError("no server to measure: give --endpoint HOST:PORT or unix:PATH, --target NAME or --sql DSN")
    names = [each.name for each in specs if each.name]
    twice = {name for name in names if names.count(name) > 1}
    if twice or (len(specs) > 1 and len(names) < len(specs)):
        raise BenchError("several servers: give each its own name, NAME=HOST:PORT, NAME=TARGET, NAME=DSN")
    for option in ("reload", "report"):
        for word in given.get(option, ()):
            specs = _belonging(specs, option, word)
    for each in specs:
        _check(each)
    return tuple(replace(each, allow_destructive=allow_destructive) for each in specs)


def _with_sql(specs: list[PeerSpec], words: Sequence[str], endpoints: int) -> list[PeerSpec]:
    """Add the DSNs; behind: number of endpoints that may have one."""
    specs = list(specs)
    for word in words:
        name, dsn = _split(word)
        here = [number for number, spec in enumerate(specs) if spec.endpoint is not None and spec.name == name]
        if not name and endpoints > 1:
            raise BenchError(f"--sql {word!r}: which endpoint is it behind? write NAME={word}, NAME as in --endpoint")
        if here or (not name and endpoints):
            number = here[0] if here else 0
            specs[number] = replace(specs[number], sql=dsn)
        else:
            specs.append(PeerSpec(name=name or ("sql" if specs else ""), sql=dsn))
    return specs


def _belonging(specs: Sequence[PeerSpec], option: str, word: str) -> list[PeerSpec]:
    name, value = _split(word)
    # A shell command may itself begin with NAME=VALUE.
    if name not in {spec.name for spec in specs if spec.name}:
        name, value = "", word
    if not name and len(specs) > 1:
        names = ", ".join(spec.name for spec in specs)
        raise BenchError(f"--{option} {word!r}: of which server? write NAME={word}, NAME one of {names}")
    changes: dict[str, Any] = {option: Path(value) if option == "report" else value}
    return [replace(spec, **changes) if spec.name == name or not name else spec for spec in specs]


def _check(spec: PeerSpec) -> None:
    # What would otherwise be found out when servers are booted already.
    if spec.sql is not None and not spec.sql.startswith(sqlite_tables.SCHEME):
        login.parse(spec.sql)
    if spec.report is not None:
        verdict.read(spec.report)


def _split(word: str) -> tuple[str, str]:
    named = _NAMED.fullmatch(word)
    return (named[1], named[2]) if named else ("", word)


def _address(text: str) -> str:
    address = parse_address(text)
    if not (address.path or address.port):
        raise BenchError(f"--endpoint {text!r}: port 0 is none; write HOST:PORT")
    return text
