"""`kvref --help`, suggestions, completion, and results in a pipe."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from helpers import commands as commands_run

from kvref import profiles
from kvref.cli import main, registry
from kvref.cli.registry import ELSEWHERE, GROUPS, commands
from kvref.errors import ConfigError
from kvref.server.listeners import listener
from kvref.server.settings import parse

# Packages beyond the core, and packages of the project that a request for help must not load.
HEAVY = (
    "pandas",
    "numpy",
    "rich",
    "uvloop",
    "pytest",
    "pymysql",
    "kvref.server",
    "kvref.engine",
    "kvref_conformance",
    "kvref_conformance_cli.conform",
    "kvref_testbed",
    "kvref_bench.cli",
)


def kvref(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return commands_run.kvref(*words, environment=plain | environment, timeout=120)


@pytest.mark.parametrize("name", commands())
def test_the_summary_of_a_command_is_the_beginning_of_its_help(name: str) -> None:
    command = commands()[name].load()
    assert command.help is not None
    assert " ".join(inspect.cleandoc(command.help).split("\n\n")[0].split()) == commands()[name].summary


def test_help_has_every_command_whole_and_its_extra() -> None:
    words = " ".join(CliRunner().invoke(main, ["--help"]).output.split())
    for name, entry in commands().items():
        extra = f" [extra: {entry.extra}" if entry.extra else ""
        assert f" {name} {entry.summary}{extra}" in words
    assert "..." not in words.partition("Operate:")[2]


def test_help_has_every_command_in_one_group() -> None:
    lines = CliRunner().invoke(main, ["--help"]).output.splitlines()
    assert [line for line in lines if line.removesuffix(":") in GROUPS] == [f"{title}:" for title in GROUPS]
    for title in GROUPS:
        first = next(name for name, entry in commands().items() if entry.group == title)
        assert lines[lines.index(f"{title}:") + 1].split()[0] == first
    assert {entry.group for entry in commands().values()} == set(GROUPS)
    assert "Not installed:" not in lines


def test_the_commands_of_other_distributions_are_known_where_they_are_not_installed() -> None:
    points = {point.name: point.load() for point in entry_points(group=registry.COMMANDS)}
    assert {name: tuple(found) for name, found in points.items()} == ELSEWHERE


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave nothing installed but the distribution `kvref`."""
    monkeypatch.setattr(registry, "entry_points", lambda *, group: ())
    commands.cache_clear()
    yield
    commands.cache_clear()


@pytest.mark.usefixtures("alone")
def test_help_names_what_is_not_installed_and_what_installs_it() -> None:
    words = " ".join(CliRunner().invoke(main, ["--help"]).output.split())
    for extra, names in ELSEWHERE.items():
        assert f"pip install 'kvref[{extra}]' {', '.join(names)}" in words
    assert "Measure:" not in words


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("extra", "name"), [(extra, name) for extra, names in ELSEWHERE.items() for name in names])
def test_a_command_that_is_not_installed_says_in_one_line_what_installs_it(extra: str, name: str) -> None:
    for words in ([name], [name, "--any", "127.0.0.1:11211"]):
        done = CliRunner().invoke(main, words)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr == f"Error: `kvref {name}` needs the package 'kvref-{extra}': pip install 'kvref[{extra}]'\n"


@pytest.mark.usefixtures("alone")
def test_a_name_close_to_a_command_that_is_not_installed() -> None:
    done = CliRunner().invoke(main, ["conferm"])
    assert (done.exit_code, "no command 'conferm', did you mean 'conform'" in done.stderr) == (2, True)


@pytest.mark.usefixtures("alone")
def test_spec_shows_the_specification_without_the_suite() -> None:
    done = CliRunner().invoke(main, ["spec", "KV-MAP-001", "--profile", "mysql-8.0"])
    assert done.exit_code == 0
    assert "KV-MAP-001  MUST" in done.stdout
    assert "evidence" in done.stdout
    assert done.stdout.endswith("Cases and recorded conversations: pip install 'kvref[conformance]'\n")
    for words in ([], ["--list"], ["--contradictions"], ["--chapter", "mapping"]):
        assert CliRunner().invoke(main, ["spec", *words]).exit_code == 0
    with_values = {
        "--html": "-",
        "--cases": "-",
        "--edition": "x",
        "--json": "-",
        "--diff": "x",
        "--compare": "mysql-5.6",
    }
    for option in ("--coverage", "--markdown", *with_values):
        done = CliRunner().invoke(
            main, ["spec", option, *[with_values[each] for each in [option] if each in with_values]]
        )
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith(
            f"Error: `kvref spec {option}` needs the package 'kvref-conformance': pip install"
        )


class Point(NamedTuple):
    """An entry point of a distribution that is damaged, or of another project."""

    value: str
    found: Mapping[str, registry.Entry] | None
    name: str = "other"
    dist: None = None

    def load(self) -> Mapping[str, registry.Entry]:
        if self.found is None:
            raise ImportError("no such module")
        return self.found


def test_a_damaged_distribution_does_not_affect_the_commands_of_kvref(
    monkeypatch: pytest.MonkeyPatch, alone: None
) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda *, group: [Point("broken:COMMANDS", None)])
    assert CliRunner().invoke(main, ["settings"]).exit_code == 0
    for words in (["--help"], ["conform"], ["other"]):
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 2
        assert done.stderr == "Error: cannot load broken:COMMANDS of a package: no such module: reinstall it\n"


def test_another_distribution_adds_commands_and_replaces_none(monkeypatch: pytest.MonkeyPatch, alone: None) -> None:
    entry = registry.Entry("kvref.cli.settings", registry.OPERATE, "Added by another package.")
    monkeypatch.setattr(
        registry, "entry_points", lambda *, group: [Point("other:COMMANDS", {"more": entry, "serve": entry})]
    )
    assert "more Added by another package." in " ".join(CliRunner().invoke(main, ["--help"]).output.split())
    assert CliRunner().invoke(main, ["more"]).stdout == CliRunner().invoke(main, ["settings"]).stdout
    assert commands()["serve"].module == "kvref.cli.serve"


@pytest.mark.programs
@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_loads_no_command(words: list[str]) -> None:
    program = (
        "import sys\nfrom kvref.cli import main\n"
        "try:\n    main(sys.argv[2:])\nexcept SystemExit as end:\n    assert not end.code\n"
        "loaded = [each for each in sys.argv[1].split(',') if each in sys.modules]\nassert not loaded, loaded"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, ",".join(HEAVY), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["serv"], "no command 'serv', did you mean 'serve': choose one of serve, init, "),
        (["xyzzy"], "no command 'xyzzy': choose one of serve"),
        (["serve", "--set", "maxconn=3"], "unknown setting 'maxconn', did you mean 'maxconns': choose one of"),
    ],
)
def test_an_unknown_name_comes_with_a_close_one(words: list[str], text: str) -> None:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert text in done.output


def test_settings_and_keys_of_a_listener_have_suggestions() -> None:
    with pytest.raises(ConfigError, match="'idle_timeouts', did you mean 'idle_timeout'"):
        parse(["idle_timeouts=3"], None, profiles.load("kvref"))
    with pytest.raises(ConfigError, match="'readonly', did you mean 'read_only'"):
        listener.listener({"readonly": True})


@pytest.mark.parametrize(
    ("words", "incomplete", "found"),
    [
        (["serve", "--profile"], "mysql-8", "mysql-8.0"),
        (["serve", "--set"], "maxc", "maxconns="),
        (["config", "show", "--set"], "maxc", "maxconns="),
        (["implement", "--profile"], "mem", "memcached"),
        (["doctor", "--profile"], "mysql-5", "mysql-5.6"),
        (["conform", "--profile"], "kv", "kvref"),
        (["conform", "--target"], "memcached-p", "memcached-proxy"),
        (["conform", "--only"], "kv-map-00", "KV-MAP-001"),
        (["conform"], "bin", "bind"),
        (["conform", "--chapter"], "exp", "expiry"),
        (["spec"], "KV-MAP-00", "KV-MAP-001"),
        (["spec", "--chapter"], "exp", "expiry"),
        (["spec", "--compare"], "mem", "memcached"),
        (["target", "up"], "mysql-5", "mysql-5.6-plugin"),
        (["target", "down"], "mysql-5", "mysql-5.6-plugin"),
        (["duel"], "mysql-5", "mysql-5.6-plugin"),
        (["replay", "--target"], "mysql-5", "mysql-5.6-plugin"),
        (["record", "--target"], "mysql-5", "mysql-5.6-plugin"),
        (["bench", "run"], "ro-", "ro-1m-int"),
        (["bench", "show"], "ro-", "ro-1m-int"),
        (["bench", "run", "--target"], "one=mysql-5", "one=mysql-5.6-plugin"),
    ],
)
def test_names_are_completed(words: list[str], incomplete: str, found: str) -> None:
    completed = [each.value for each in ShellComplete(main, {}, "kvref", "_").get_completions(words, incomplete)]
    assert found in completed
    assert all(each.casefold().startswith(incomplete.casefold()) for each in completed)


@pytest.mark.programs
def test_the_shell_completes_commands_and_options() -> None:
    def complete(**environment: str) -> str:
        program = "from kvref.cli import main; main(prog_name='kvref')"
        return subprocess.run(
            [sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True, check=True
        ).stdout

    for words, word, found in (("kvref se", "1", "serve"), ("kvref serve --work", "2", "--workers")):
        assert f"plain,{found}" in complete(_KVREF_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=word).split()
    assert "_kvref_completion" in complete(_KVREF_COMPLETE="zsh_source")


@pytest.mark.programs
def test_a_pipe_gets_lines_of_any_length_without_blanks_at_the_end(tmp_path: Path) -> None:
    dsn = f"sqlite:///{tmp_path}/{'long-name-' * 12}.sqlite"
    assert kvref("init", "--store", dsn).returncode == 0
    piped = kvref("doctor", "--store", dsn, "--profile", "kvref").stdout
    narrow = kvref("doctor", "--store", dsn, "--profile", "kvref", COLUMNS="60").stdout
    assert max(map(len, piped.splitlines())) > 80
    assert max(map(len, narrow.splitlines())) <= 60
    assert not [line for line in piped.splitlines() if line != line.rstrip()]
