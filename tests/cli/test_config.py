"""`kvref config` and `kvref settings`: each value with its origin, and files that are refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from helpers.serving import ask, running

from kvref.cli import main
from kvref.cli.serve import command as serve
from kvref.server.settings import SETTINGS

FILE = """
store = "mysql://root:secret@127.0.0.1/"
workers = 2
log_format = "json"
[settings]
maxconns = 100
idle_timeout = 5
"""


def run(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(main, words, env=environment)


def origins(result: Result) -> dict[str, tuple[object, str]]:
    assert result.exit_code == 0, result.output
    return {name: (each["value"], each["origin"]) for name, each in json.loads(result.stdout).items()}


def test_option_before_environment_before_file_before_default(tmp_path: Path) -> None:
    file = tmp_path / "kvref.toml"
    file.write_text(FILE)
    words = ("config", "show", "--json", "--config", str(file), "--workers", "4", "--set", "maxconns=7")
    shown = origins(run(*words, KVREF_WORKERS="3", KVREF_LOG_FORMAT="text", KVREF_PROFILE="mysql-8.0"))
    assert shown["workers"] == (4, "option")
    assert shown["log_format"] == ("text", "environment")
    assert shown["profile"] == ("mysql-8.0", "environment")
    assert shown["store"] == ("mysql://root:…@127.0.0.1/", "file")
    assert shown["log_level"] == ("info", "default")
    assert shown["settings.maxconns"] == (7, "option")
    assert shown["settings.idle_timeout"] == (5, "file")
    assert shown["settings.send_timeout"] == (300, "default")
    assert shown["listen"] == ("127.0.0.1:11211", "default")


def test_the_environment_names_store_listener_file_and_settings(tmp_path: Path) -> None:
    file = tmp_path / "kvref.toml"
    file.write_text(FILE)
    environment = {"KVREF_STORE": "memory://", "KVREF_LISTEN": "127.0.0.1:0", "KVREF_CONFIG": str(file)}
    shown = origins(run("config", "show", "--json", **environment, KVREF_SET="maxconns=8 send_timeout=9"))
    assert shown["store"] == ("memory://", "environment")
    assert shown["listen"] == ("127.0.0.1:0", "environment")
    assert shown["workers"] == (2, "file")
    assert shown["settings.maxconns"] == (8, "environment")
    assert shown["settings.send_timeout"] == (9, "environment")


def test_the_table_has_the_same_lines() -> None:
    lines = run("config", "show").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(origins(run("config", "show", "--json")))


def test_a_valid_file(tmp_path: Path) -> None:
    file = tmp_path / "kvref.toml"
    file.write_text(FILE)
    assert run("config", "check", str(file)).output == f"{file}: valid\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("stor = 'x'", "unknown key 'stor', did you mean 'store': write a table [settings] with NAME = VALUE"),
        ("store = 'x'", "store 'x', did you mean sqlite:///x: write sqlite:///PATH"),
        ("workers = 'two'", "workers = 'two': write an integer"),
        ("workers = true", "workers = True: write an integer"),
        ("workers = 1000", "1000 is not in the range 1<=x<=64"),
        ("profile = 'mysql-9'", "no profile 'mysql-9'"),
        ("log_format = 'xml'", "'xml' is not one of 'text', 'json'"),
        ("[settings]\nnope = 1", "unknown setting 'nope'"),
        ("[settings]\nmaxconns = 0", "setting maxconns=0: write a number from 1"),
        ("[[listener]]\naddress = 'nowhere'", "address 'nowhere': write HOST:PORT"),
        ("store = ", "configuration file"),
    ],
)
def test_a_file_that_is_refused(tmp_path: Path, text: str, error: str) -> None:
    file = tmp_path / "kvref.toml"
    file.write_text(text)
    result = run("config", "check", str(file))
    assert (result.exit_code, error in result.output) == (2, True), result.output


def test_settings_lists_each() -> None:
    text, rows = run("settings").stdout, json.loads(run("settings", "--json").stdout)
    assert rows.keys() == SETTINGS.keys()
    assert all(f" {each.name}={each.default}  (" in text for each in SETTINGS.values())


def test_the_help_of_the_server_lists_every_option_in_a_group() -> None:
    text = run("serve", "--help").stdout
    titles = ["Store:", "Listener:", "Configuration:", "Metrics and log:", "Other options:"]
    assert [line for line in text.splitlines() if line in titles] == titles
    options = text.partition("Store:")[2]
    assert all(f"\n  {each.opts[0]}" in options for each in serve.params)
    assert "--help" in text.rpartition("Other options:")[2]


def test_every_option_has_the_variable_of_its_name(tmp_path: Path) -> None:
    text = " ".join(run("serve", "--help").output.split())
    options = [each for each in serve.params if isinstance(each, click.Option)]
    for option in options:
        assert option.envvar == "KVREF_" + option.opts[0].removeprefix("--").replace("-", "_").upper()
        assert f"env var: {option.envvar}" in text
    store = f"sqlite:///{tmp_path / 'new.sqlite'}"
    users = tmp_path / "users"
    users.write_text("alice:secret\n")
    refused = run("serve", KVREF_STORE=store, KVREF_LISTEN="0.0.0.0:0")
    assert refused.exit_code == 2
    assert "0.0.0.0" in refused.output
    refused = run("serve", KVREF_STORE=store, KVREF_AUTH_FILE=str(users))
    assert refused.exit_code == 2
    assert "--create" in refused.output
    environment = {"PATH": "", "KVREF_STORE": store, "KVREF_CREATE": "1", "KVREF_DEMO": "1", "KVREF_READ_ONLY": "1"}
    words = [sys.executable, "-m", "kvref", "serve"]
    with running(words, store, environment | {"KVREF_LISTEN": "127.0.0.1:0"}) as served, served.connect() as client:
        assert ask(client, b"get AA\r\n") == b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
        assert ask(client, b"delete AA\r\n").startswith(b"CLIENT_ERROR")


STORES = """
[[store]]
name = "one"
dsn = "sqlite:///one.sqlite"
[[store]]
name = "two"
dsn = "mysql://kvref@127.0.0.1/"
"""


def test_stores_are_shown_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "kvref.toml"
    file.write_text(STORES + "[[mapping]]\nname = 'orders'\nstore = 'two'")
    assert run("config", "check", str(file)).output == f"{file}: valid\n"
    shown = origins(run("config", "show", "--json", "--config", str(file)))
    dsns = [{"name": "one", "dsn": "sqlite:///one.sqlite"}, {"name": "two", "dsn": "mysql://kvref@127.0.0.1/"}]
    assert shown["store"] == (dsns, "file")
    assert shown["mapping"] == ([{"name": "orders", "store": "two"}], "file")
    refused = run("config", "show", "--config", str(file), "--store", "memory://")
    assert (refused.exit_code, "--store memory://: configuration file" in refused.output) == (2, True)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[[store]]\nname = 'one'", "[[store]] with no dsn: write name and dsn, each with a text"),
        ("[[store]]\nname = 1\ndsn = 'memory://'", "[[store]] with name = 1: write name and dsn"),
        ("[[store]]\nname = 'a b'\ndsn = 'memory://'", "[[store]] name 'a b': write a letter"),
        ("[[store]]\nname = 'a'\ndns = 'memory://'", "[[store]] has an unknown key 'dns', did you mean 'dsn'"),
        ("[[store]]\nname = 'a'\ndsn = 'memory'", "store 'memory', did you mean memory://: write sqlite:///PATH"),
        (STORES + "[[store]]\nname = 'one'\ndsn = 'memory://'", "[[store]] name 'one' is there twice"),
        (STORES + "[[store]]\nname = 'x'\ndsn = 'sqlite:///./one.sqlite'", "[[store]] 'x' and 'one' have the same dsn"),
        ("[[mapping]]\nname = 'm'\nstore = 'one'", "write a table [[store]] for each store first"),
        (STORES + "[[mapping]]\nname = 'm'", "[[mapping]] with no store: write name and store"),
        (STORES + "[[mapping]]\nname = 'm'\nstore = 'tow'", "no [[store]] has this name, did you mean 'two'"),
        (STORES + "[[mapping]]\nname = 'm'\nstore = 'one'\n" * 2, "[[mapping]] name 'm' is there twice"),
        (STORES + "[[mapping]]\nname = 'm'\nstores = ['one', 'two']", "unknown key 'stores'"),
        ("mapping = 1", "a table [[listener]] for each listener"),
        ("store = []", "store = []: write a string"),
        ("store = [1]", "store = [1]: write a string"),
    ],
)
def test_stores_that_are_refused(tmp_path: Path, text: str, error: str) -> None:
    file = tmp_path / "kvref.toml"
    file.write_text(text)
    result = run("config", "check", str(file))
    assert (result.exit_code, error in result.output) == (2, True), result.output


def test_check_reports_every_error_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "kvref.toml"
    file.write_text(
        """
profile = "mysql-9"
workers = 0
log_level = 3
metrics = "unix:/x"
porfile = "kvref"
[settings]
maxcons = 5
idle_timeout = "5"
innodb_api_trx_level = 9
[[store]]
name = "a"
dsn = "nothing://"
[[store]]
name = "b c"
dsn = "memory://"
[[mapping]]
name = "m"
store = "a"
[[mapping]]
name = "n"
store = "z"
[[listener]]
address = "tcp://127.0.0.1:1"
mapings = ["m"]
[[listener]]
address = "0.0.0.0:0"
read_only = 1
"""
    )
    result = run("config", "check", str(file))
    title, *lines = result.output.splitlines()
    assert (result.exit_code, title) == (2, f"Error: configuration file {file}: 15 errors:")
    parts = (
        "log_level = 3: write a string", "workers = 0: 0 is not in the range 1<=x<=64", "no profile 'mysql-9'",
        "--metrics unix:/x: HTTP is served over TCP", "unknown key 'porfile', did you mean 'profile'",
        "setting idle_timeout = '5': write an integer", "unknown setting 'maxcons', did you mean 'maxconns'",
        "setting innodb_api_trx_level=9: write a number from 0 to 3", "store 'nothing://': write sqlite:///PATH",
        "[[store]] name 'b c': write a letter", "[[mapping]] 'n': store 'z': no [[store]] has this name",
        "address 'tcp://127.0.0.1:1': it is not a URL", "unknown key 'mapings', did you mean 'mappings'",
        "read_only = 1: write true or false", "reachable from other hosts without authentication",
    )  # fmt: skip
    assert all(part in line for part, line in zip(parts, lines, strict=True)), result.output


@pytest.mark.parametrize(
    "text",
    ['profile = "memcached"', 'metrics = "unix:/x"', 'workers = 2\nstore = "memory://"'],
)
def test_check_refuses_what_the_server_refuses(tmp_path: Path, text: str) -> None:
    file = tmp_path / "kvref.toml"
    file.write_text(text)
    refused = [run(*words, str(file)) for words in (("config", "check"), ("serve", "--config"))]
    assert [each.exit_code for each in refused] == [2, 2]
    assert refused[1].output.removeprefix("Error: ") in refused[0].output.replace(f"configuration file {file}: ", "")
