"""DSNs: the forms that are read, and what a run may tell of them."""

from __future__ import annotations

import pytest

from kvref_bench.errors import BenchError
from kvref_bench.sql import login


@pytest.mark.parametrize(
    ("dsn", "read"),
    [
        ("mysql://bench@db.example/", ("db.example", 3306, "bench", "", None)),
        ("mysql://bench:s%40fe@10.0.0.2:3307", ("10.0.0.2", 3307, "bench", "s@fe", None)),
        ("mysql://root@localhost/?unix_socket=/run/my%20sql.sock", ("localhost", 3306, "root", "", "/run/my sql.sock")),
    ],
)
def test_forms(dsn: str, read: tuple[object, ...]) -> None:
    assert login.parse(dsn, {}) == login.Login(*read)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "dsn",
    [
        "db:3306",
        "postgres://root@db/",
        "mysql:///",
        "mysql://root@db/shop",
        "mysql://root@db/?ssl=1",
        "mysql://root@db:x/",
    ],
)
def test_other_forms_are_refused_with_the_right_ones(dsn: str) -> None:
    with pytest.raises(BenchError, match="write mysql://USER"):
        login.parse(dsn, {})


@pytest.mark.parametrize(
    ("dsn", "reported"),
    [
        ("mysql://bench:secret@db:3307/", "mysql://bench:…@db:3307/"),
        ("mysql://bench@db:3307/", "mysql://bench@db:3307/"),
        ("mysql://root@localhost/?unix_socket=%2Frun%2Fdb%2Fmy.sock", "mysql://root@localhost/?unix_socket=my.sock"),
        ("sqlite:////home/bench/shop.sqlite", "sqlite:///shop.sqlite"),
    ],
)
def test_a_run_reports_neither_password_nor_folder(dsn: str, reported: str) -> None:
    assert login.without_password(dsn) == reported
