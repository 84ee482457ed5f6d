"""README and documentation, --help and the code say the same."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from generators import speed
from kvref.cli import main, registry
from kvref.server.settings import SETTINGS
from kvref_testbed.targets import names

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
GENERATED = ("commands", "specification", "differences", "deviations", "generated", "notebooks")
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted(DOCS.rglob("*.md")) if not set(GENERATED) & set(page.relative_to(DOCS).parts)),
]
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
BLOCK = re.compile(r"^( *)```(?:sh|console)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


def commands() -> Iterator[tuple[str, str]]:
    """Yield the lines of each block of commands with the page."""
    for page, text in TEXTS.items():
        for block in BLOCK.finditer(text):
            yield from ((page, line.strip()) for line in re.sub(r"\\\n", " ", block[2]).splitlines() if line.strip())


LINES = list(dict.fromkeys(commands()))
# Lines that a shell puts together from variables are run whole, by tests/doctor/test_migration.py.
KVREF = [(page, line) for page, line in LINES if line.startswith("kvref ") and "$" not in line]


def click_words(line: str) -> list[str]:
    """Return the words of a command without comment and redirections."""
    words = shlex.split(line, comments=True)[1:]
    ends = [place for place, word in enumerate(words) if re.match(r"2?[<>]|[|&]$", word)]
    return words[: ends[0]] if ends else words


@pytest.mark.parametrize(("page", "line"), KVREF)
def test_a_command_of_the_documentation_is_one(
    page: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = click_words(line)
    if "kvref.toml" in words:  # a page writes it
        (tmp_path / "kvref.toml").touch()
        monkeypatch.chdir(tmp_path)
    context = click.Context(main, info_name="kvref")
    command: click.Command = main
    while isinstance(command, click.Group):
        name = words.pop(0)
        found = command.get_command(context, name)
        assert found is not None, f"no command {name!r}"
        command = found
    with command.make_context(name, words, parent=context):
        pass  # the options and arguments are taken; nothing is run


SPANS = sorted({(page, span) for page, text in TEXTS.items() for span in re.findall(r"`(kvref [a-z][^`\n]*)`", text)})


@pytest.mark.parametrize(("page", "span"), SPANS)
def test_a_command_within_a_sentence_has_its_options(page: str, span: str) -> None:
    context = click.Context(main)
    command: click.Command = main
    words = click_words(span)
    while isinstance(command, click.Group) and words and words[0].replace("-", "").isalpha():
        name = words.pop(0)
        found = command.get_command(context, name)
        assert found is not None, f"no command {name!r}"
        command = found
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= {*known, "--help", "--version"}


# Remove it, and the sentences that it requires, when kvref is on an index.
@pytest.mark.parametrize("page", sorted({page for page, line in LINES if "pip install 'kvref" in line}))
def test_a_page_that_installs_kvref_says_how_to_do_it_without_an_index(page: str) -> None:
    assert "not on a package index yet" in TEXTS[page]


def test_every_command_has_help_and_is_on_a_page() -> None:
    context = click.Context(main)
    shown = "\n".join(line for _, line in KVREF)
    for name in registry.commands():
        command = main.get_command(context, name)
        assert command is not None
        assert command.help
        assert re.search(rf"^kvref {name}\b", shown, re.MULTILINE), name


@pytest.mark.parametrize(("page", "line"), [(page, line) for page, line in LINES if line.startswith("bash .")])
def test_a_script_of_the_documentation_is_there(page: str, line: str) -> None:
    assert (ROOT / shlex.split(line, comments=True)[1]).is_file()


PATH = r"`((?:kvref|tests|conformance|bench|docs)/[\w./<>*-]*)`"


@pytest.mark.parametrize(
    ("page", "path"), sorted({(page, path) for page, text in TEXTS.items() for path in re.findall(PATH, text)})
)
def test_a_path_of_the_documentation_is_there(page: str, path: str) -> None:
    assert list(ROOT.glob(re.sub(r"<\w+>", "*", path).rstrip("/"))), path


def test_every_setting_is_listed() -> None:
    shown = CliRunner().invoke(main, ["settings"]).stdout
    for setting in SETTINGS.values():
        assert f"{setting.name}={setting.default} " in shown


@pytest.mark.parametrize("name", names())
def test_every_target_is_explained(name: str) -> None:
    page = TEXTS["docs/reference/targets.md"]
    assert re.search(rf"^\|.*`{re.escape(name)}`.* \| .+ \|.*\|$", page, re.MULTILINE)


def test_the_readme_is_short_and_has_absolute_links_only() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert links
    assert [link for link in links if not link.startswith("https://")] == []
    assert not re.search(r"<[a-z]+[ >]", text), "an index drops HTML"


def test_every_link_of_the_readme_leads_to_a_page_or_file() -> None:
    text = README.read_text(encoding="utf-8")
    for path in re.findall(r"\]\(https://kvref\.github\.io/kvref/([^)]+)\.html\)", text):
        # Generated pages are checked by the build of the site.
        assert (DOCS / f"{path}.md").is_file() or set(GENERATED) & set(Path(path).parts), path
    for path in re.findall(
        r"https://(?:raw\.githubusercontent\.com/kvref/kvref|github\.com/kvref/kvref/blob)/main/([^)]+)\)", text
    ):
        assert (ROOT / path).is_file(), path


def test_the_chart_of_speed_is_made_of_the_results() -> None:
    assert speed.CHART.read_text(encoding="utf-8") == speed.chart(), "PYTHONPATH=docs python -m generators.speed"
    assert speed.alternative() in README.read_text(encoding="utf-8")
