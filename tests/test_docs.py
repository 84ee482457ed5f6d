"""README, --help and the code say the same."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from kvref.cli import COMMANDS, main
from kvref.server.settings import SETTINGS
from kvref.targets import names

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
LINES = [line for block in BLOCKS for line in block.splitlines() if line]
KVREF = [line for line in LINES if line.startswith("kvref ")]


@pytest.mark.parametrize("line", KVREF)
def test_a_command_of_the_readme_is_one(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    context = click.Context(main, info_name="kvref")
    command: click.Command = main
    while isinstance(command, click.Group):
        name = words.pop(0)
        found = command.get_command(context, name)
        assert found is not None, f"no command {name!r}"
        command = found
    with command.make_context(name, words, parent=context):
        pass  # the options and arguments are taken; nothing is run


def test_every_command_has_help_and_stands_in_the_readme() -> None:
    context = click.Context(main)
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        assert command.help
        assert re.search(rf"^kvref {name}\b", "\n".join(KVREF), re.MULTILINE), name


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("bash ")])
def test_a_script_of_the_readme_is_there(line: str) -> None:
    assert (ROOT / shlex.split(line, comments=True)[1]).is_file()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:kvref|tests|conformance|bench)/[\w./<>*-]*)`", README))))
def test_a_path_of_the_readme_is_there(path: str) -> None:
    assert list(ROOT.glob(re.sub(r"<\w+>", "*", path).rstrip("/"))), path


def test_every_setting_is_in_the_help() -> None:
    command = main.get_command(click.Context(main), "serve")
    assert command is not None
    assert command.help is not None
    for setting in SETTINGS.values():
        assert f"{setting.name}={setting.default} " in command.help


@pytest.mark.parametrize("name", names())
def test_every_target_is_explained_in_the_readme(name: str) -> None:
    assert re.search(rf"^\|.*`{re.escape(name)}`.* \| .+ \|.*\|$", README, re.MULTILINE)
