"""Servers of a command line, and the errors for ambiguous words."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import reports

from kvref.errors import KvrefError
from kvref_bench.peers import PeerSpec
from kvref_bench.specs import read

ONE, OTHER = "127.0.0.1:1", "127.0.0.1:2"
REPORT = Path("r=1")
DSN = "mysql://root@localhost/?unix_socket=a.sock"


@pytest.fixture(autouse=True)
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report in the working directory, in a folder whose name looks like NAME=VALUE."""
    monkeypatch.chdir(tmp_path)
    REPORT.mkdir()
    (REPORT / "report.jsonl").write_text(reports.text(reports.lines()))


def test_words_with_a_name_belong_to_the_server_of_that_name() -> None:
    both = ["a=" + ONE, "b=" + OTHER]
    assert read(endpoint=both, sql=["b=" + DSN], reload=["b=B=2 ./again"], report=[f"a={REPORT}"]) == (
        PeerSpec(ONE, "a", report=REPORT),
        PeerSpec(OTHER, "b", DSN, reload="B=2 ./again"),
    )


def test_a_database_by_itself_is_a_server() -> None:
    assert read(sql=[DSN]) == (PeerSpec(None, "", DSN),)
    assert read(target=["memcached"], sql=["rows=" + DSN]) == (
        PeerSpec("memcached", "memcached"), PeerSpec(None, "rows", DSN),
    )  # fmt: skip
    assert read(target=["old=memcached", "new=memcached"]) == (
        PeerSpec("memcached", "old"), PeerSpec("memcached", "new"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({}, "no server to measure: give --endpoint HOST:PORT"),
        ({"endpoint": ["localhost"]}, "address 'localhost': write HOST:PORT"),
        ({"endpoint": ["localhost:0"]}, "port 0"),
        (
            {"target": ["memcache"]},
            "unknown target 'memcache', did you mean 'memcached': choose one of mysql-8.0-plugin, ",
        ),
        ({"endpoint": [ONE, OTHER]}, "give each its own name"),
        ({"endpoint": ["a=" + ONE, "a=" + OTHER]}, "give each its own name"),
        ({"target": ["memcached", "memcached"]}, "give each its own name"),
        ({"endpoint": ["a=" + ONE, "b=" + OTHER], "sql": [DSN]}, "which endpoint is it behind? write NAME=mysql"),
        ({"endpoint": [ONE], "sql": ["postgres://localhost/"]}, "postgres://localhost/"),
        ({"endpoint": [ONE], "report": ["nowhere"]}, "nowhere: No such file or directory: give report.jsonl"),
        (
            {"endpoint": ["a=" + ONE, "b=" + OTHER], "reload": ["true"]},
            "--reload 'true': of which server? write NAME=true",
        ),
    ],
)
def test_what_is_missing_or_could_mean_two_is_reported(words: dict[str, list[str]], text: str) -> None:
    with pytest.raises(KvrefError) as reported:
        read(**words)
    assert text in str(reported.value)
