"""Settings: limits, sources, and the handling of values out of range in each profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvref import profiles
from kvref.errors import ConfigError
from kvref.server.planners.base import MAX_BYTES
from kvref.server.settings import SETTINGS, parse

W = "daemon_memcached_w_batch_size"
R = "daemon_memcached_r_batch_size"
INTERVAL = "innodb_api_bk_commit_interval"
LEVEL = "innodb_api_trx_level"


def test_no_reply_that_is_not_checked_is_larger_than_a_setting_may_bound_it() -> None:
    assert SETTINGS["reply_size_max"].low >= MAX_BYTES


@pytest.mark.parametrize(
    ("name", "default", "low", "high"),
    [
        (R, 1, 1, 1073741824),
        (W, 1, 1, 1048576),
        (INTERVAL, 5, 1, 1073741824),
        (LEVEL, 0, 0, 3),
        ("innodb_api_disable_rowlock", 0, 0, 1),
        ("innodb_api_enable_mdl", 0, 0, 1),
        ("innodb_api_enable_binlog", 0, 0, 1),
    ],
)
def test_the_plugins_defaults_and_limits(name: str, default: int, low: int, high: int) -> None:
    """As SHOW VARIABLES has them (vars-002 to -011)."""
    setting = SETTINGS[name]
    for profile in ("mysql-5.6", "mysql-8.0"):
        assert (setting.default_in(profiles.load(profile)), setting.low, setting.high) == (default, low, high)
    assert setting.default == setting.default_in(profiles.load("kvref")) == (1 if name == LEVEL else default)


@pytest.mark.parametrize(("profile", "level"), [("kvref", 1), ("mysql-5.6", 0), ("mysql-8.0", 0)])
def test_only_committed_rows_are_shown_by_default_where_the_plugin_does_not_decide(profile: str, level: int) -> None:
    facts = profiles.load(profile)
    assert parse([], None, facts)[LEVEL] == level
    assert [parse([f"{LEVEL}={given}"], None, facts)[LEVEL] for given in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("profile", "pair", "value"),
    [
        ("mysql-8.0", f"{W}=0", 1),  # wbatch-092
        ("mysql-8.0", f"{W}=99999999999", 1048576),  # wbatch-093
        ("mysql-8.0", f"{W}=-5", 1),  # wbatch-094
        ("mysql-5.6", f"{W}=-5", 1048576),
        ("mysql-5.6", f"{INTERVAL}=0", 1),  # idle-035
        ("mysql-8.0", f"{INTERVAL}=99999999999", 1073741824),
        ("kvref", f"{W}=1048576", 1048576),
    ],
)
def test_out_of_range(profile: str, pair: str, value: int) -> None:
    assert parse([pair], None, profiles.load(profile))[pair.partition("=")[0]] == value


@pytest.mark.parametrize("text", ["0", "1048577", "-5", "many", "", "1.5", "9" * 30])
def test_the_default_profile_refuses(text: str) -> None:
    with pytest.raises(ConfigError, match=f"setting {W}=.*: write a number from 1 to 1048576"):
        parse([f"{W}={text}"], None, profiles.load("kvref"))


def test_the_command_line_comes_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "kvref.toml"
    file.write_text(f"[settings]\n{W} = 3\n{R} = 4\ninnodb_api_disable_rowlock = true\n")
    values = parse([f"{W}=5"], file, profiles.load("kvref"))
    assert (values[W], values[R], values["innodb_api_disable_rowlock"]) == (5, 4, 1)


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("settings = 3", r"write a table \[settings\]"),
        ("[other]\nx = 1", r"write a table \[settings\]"),
        ("[settings]\nx = 1", "unknown setting 'x': choose one of"),
        (f"[settings]\n{W} = 0", "write a number from 1"),
        ("[settings]\nmaxconns = true", "setting maxconns is a number of connections, not true or false"),
        ("[settings]\nidle_timeout = false", "setting idle_timeout is a number of s, not true or false"),
        ("[settings]\nmaxconns = '9'", "setting maxconns = '9': write an integer, true or false"),
        ("[settings]\nmaxconns = 1.0", "setting maxconns = 1.0: write an integer"),
        ("[settings]\nmaxconns = [1]", r"setting maxconns = \[1\]: write an integer"),
        ("[settings]\ninnodb_api_disable_rowlock = 'true'", "write an integer, true or false"),
        ("[settings", "configuration file .*kvref.toml: "),
    ],
)
def test_a_bad_file(content: str, cause: str, tmp_path: Path) -> None:
    file = tmp_path / "kvref.toml"
    file.write_text(content)
    with pytest.raises(ConfigError, match=cause):
        parse([], file, profiles.load("kvref"))
