"""What is built once: whole or not at all, by one builder, whoever else wants it meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from helpers.waiting import until

from kvref.errors import TargetError
from kvref_testbed.targets import QUIET
from kvref_testbed.targets.folders import build_once

if TYPE_CHECKING:
    from pathlib import Path


def test_of_many_builders_one_builds(tmp_path: Path) -> None:
    built: list[Path] = []
    wanted: list[int] = []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "half").touch()
        until(lambda: len(wanted) == 4)
        assert not (tmp_path / "thing").exists()
        (folder / "whole").touch()

    def want(number: int) -> bool:
        wanted.append(number)
        return (build_once(tmp_path / "thing", build, QUIET) / "whole").is_file()

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(want, range(4)))
    assert len(built) == 1


def test_a_failed_build_leaves_nothing_and_may_be_repeated(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("no space left")

    with pytest.raises(TargetError, match=r"thing cannot be built: no space left"):
        build_once(tmp_path / "thing", fail, QUIET)
    assert [each.name for each in tmp_path.iterdir()] == ["thing.lock"]
    assert build_once(tmp_path / "thing", lambda folder: (folder / "whole").touch(), QUIET).is_dir()


def test_what_a_killed_builder_left_is_not_taken(tmp_path: Path) -> None:
    unfinished = tmp_path / "thing.unfinished"
    unfinished.mkdir()
    (unfinished / "half").touch()
    folder = build_once(tmp_path / "thing", lambda empty: (empty / "whole").touch(), QUIET)
    assert [each.name for each in folder.iterdir()] == ["whole"]
