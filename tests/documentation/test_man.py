"""The man page has every command and option, and roff prints it without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from generators import man
from kvref.cli import main
from kvref.cli.registry import commands

ROOT = Path(__file__).parents[2]


def options(command: click.Command, context: click.Context) -> set[str]:
    """Return the long options of a command and of its subcommands."""
    found = {each for parameter in command.params for each in parameter.opts if each.startswith("--")}
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            found |= options(below, context)
    return found


def test_every_command_and_option_is_on_it() -> None:
    page = man.page()
    context = click.Context(main, info_name="kvref")
    for name in commands():
        assert f"\n.SS kvref {name} ".replace("-", "\\-") in page
        command = main.get_command(context, name)
        assert command is not None
        for option in options(command, context):
            assert option.replace("-", "\\-") in page, option


@pytest.mark.nightly
def test_the_program_writes_it_and_roff_has_no_warning(tmp_path: Path) -> None:
    file = tmp_path / "man" / "kvref.1"
    subprocess.run([sys.executable, "-m", "generators.man", str(file)], cwd=ROOT / "docs", check=True)
    assert file.read_text().startswith(".TH KVREF 1 ")
    if shutil.which("groff") is None:
        pytest.skip("no groff: the page is not printed")
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", str(file)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    plain = re.sub(".\b", "", done.stdout)  # bold is printed twice
    assert "kvref serve [OPTIONS]" in plain
    assert "--allow-destructive" in plain.replace("\u2010", "-").replace("\u2212", "-")


def test_text_that_roff_would_read_as_a_request() -> None:
    assert man._escaped(".x \\ 'a' `b` -c") == "\\&.x \\e \\(aqa\\(aq \\(gab\\(ga \\-c"
