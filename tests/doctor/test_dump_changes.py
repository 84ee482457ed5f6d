"""What a dump's statements make: verdicts where they are understood, none where they are not."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from doctor.dumps import (
    CONFIGURATION,
    CONFIGURATION_NOT_UNDERSTOOD,
    ITEMS,
    NOT_UNDERSTOOD,
    NOTHING_UNDERSTOOD,
    OPEN,
    SHOP,
    UNDERSTOOD,
    after,
)

from kvref.cli import main

PLAIN = f"{CONFIGURATION}{SHOP}{ITEMS}".replace("`", "")


def examined(folder: Path, data: bytes | str) -> dict[str, Any]:
    (folder / "x.sql").write_bytes(data if isinstance(data, bytes) else data.encode())
    result = CliRunner().invoke(main, ["doctor", str(folder / "x.sql"), "--profile", "mysql-8.0", "--json", "-"])
    assert result.stdout, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["exit_code"] == result.exit_code
    return found


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_what_is_understood(tmp_path: Path, name: str) -> None:
    dump = UNDERSTOOD[name]
    found = examined(tmp_path, dump.text)
    assert {row["name"]: row["state"] for row in found["rows"]} == dump.states, found["notes"]
    assert dump.fault in "".join(row["fault"] for row in found["rows"])
    assert found["exit_code"] == int("unusable" in dump.states.values())


@pytest.mark.parametrize("text", NOT_UNDERSTOOD)
def test_what_is_not_understood_gives_no_verdict(tmp_path: Path, text: str) -> None:
    dump = after(text, OPEN)
    found = examined(tmp_path, dump.text)
    assert {row["name"]: row["state"] for row in found["rows"]} == dump.states
    assert found["exit_code"] == 2
    assert "check the server itself (--store)" in found["rows"][0]["fault"]


@pytest.mark.parametrize("text", [*CONFIGURATION_NOT_UNDERSTOOD, *NOTHING_UNDERSTOOD])
def test_a_configuration_that_is_not_understood_gives_no_verdict(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.sql").write_text(after(text, OPEN).text)
    result = CliRunner().invoke(main, ["doctor", str(tmp_path / "x.sql")])
    assert (result.exit_code, "cannot be read from the dump: " in result.output) == (2, True)


def test_another_table_that_is_not_understood_is_only_noted(tmp_path: Path) -> None:
    text = "CREATE TABLE other (a INT) SOMETHING=NEW;\nUPDATE other JOIN items SET a = 1;\nCREATE PROCEDURE p() DROP TABLE items;\n"
    found = examined(tmp_path, after(text, OPEN).text)
    assert (found["exit_code"], len(found["notes"])) == (0, 2)


def test_a_dump_that_is_cut_has_no_missing_tables(tmp_path: Path) -> None:
    begun = f"-- MySQL dump 10.13  Distrib 8.0.33\n{CONFIGURATION}{SHOP}"
    assert examined(tmp_path, begun)["exit_code"] == 2
    assert examined(tmp_path, f"{begun}-- Dump completed on 2026-01-01\n")["exit_code"] == 1


def test_a_configuration_of_which_a_table_is_missing(tmp_path: Path) -> None:
    part = f"{PLAIN}DROP TABLE innodb_memcache.cache_policies;"
    assert examined(tmp_path, part)["refused"].startswith("cache_policies is missing")
    unknown = PLAIN.replace("CREATE DATABASE innodb_memcache CHARACTER SET utf8mb4;", "").replace(
        "cache_policies", "other"
    )
    (tmp_path / "x.sql").write_text(unknown)
    result = CliRunner().invoke(main, ["doctor", str(tmp_path / "x.sql")])
    assert (result.exit_code, "the dump has no table innodb_memcache.cache_policies" in result.output) == (2, True)


def zstd(data: bytes) -> bytes:
    if shutil.which("zstd") is None:
        pytest.skip("the program zstd is not installed")
    return subprocess.run(["zstd", "-cq"], input=data, capture_output=True, check=True).stdout


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress, "zstd": zstd,
    "UTF-8 with a mark": lambda data: b"\xef\xbb\xbf" + data,
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "UTF-16 big-endian": lambda data: b"\xfe\xff" + data.decode().encode("utf-16-be"),
    "line ends of Windows": lambda data: data.replace(b"\n", b"\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_files(tmp_path: Path, form: str) -> None:
    data = FORMS[form](PLAIN.encode())
    assert examined(tmp_path, data)["exit_code"] == 0
    result = CliRunner().invoke(main, ["doctor", "-", "--json", "-"], input=data)
    assert json.loads(result.stdout)["source"] == "standard input"
    assert (result.exit_code, json.loads(result.stdout)["rows"][0]["state"]) == (0, "usable")


@pytest.mark.parametrize("form", ["gzip", "xz", "bzip2", "zstd"])
def test_a_compressed_file_that_is_cut(tmp_path: Path, form: str) -> None:
    (tmp_path / "x.sql").write_bytes(FORMS[form](PLAIN.encode())[:-30])
    result = CliRunner().invoke(main, ["doctor", str(tmp_path / "x.sql")])
    assert (result.exit_code, f"x.sql: not a whole {form} file: " in result.output) == (2, True)
    assert len(result.output.splitlines()) == 1
