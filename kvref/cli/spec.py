"""`kvref spec`: the requirements, one with everything that is known of it, or all as a page.

Shows the contents of `kvref.specification.requirements`. What needs cases or recordings comes from the suite, if it is
installed, by the entry point `kvref.specification`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.text import Text

from kvref import profiles
from kvref.cli import completion, output
from kvref.cli.registry import not_installed, provided
from kvref.errors import KvrefError, SuiteError, choices, install, suggestion
from kvref.specification import requirements, terminal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType

    from kvref.specification.requirements import Requirement

VIEWS: Final = "kvref.specification"


@click.command("spec")
@click.argument("identifiers", metavar="[ID]...", nargs=-1, shell_complete=completion.requirement)
@click.option(
    "--chapter",
    "chapters",
    shell_complete=completion.chapter,
    metavar="NAME",
    multiple=True,
    help="Only this chapter (`mapping`) or area (`MAP`). Repeatable.",
)
@click.option(
    "--profile", metavar="NAME", shell_complete=completion.profile, help="Only requirements that apply to this profile."
)
@click.option(
    "--level", type=click.Choice(requirements.LEVELS, case_sensitive=False), help="Only requirements of this level."
)
@click.option("--list", "as_list", is_flag=True, help="One line per requirement.")
@click.option(
    "--contradictions", is_flag=True, help="QUIRK requirements with the published texts that they contradict."
)
@click.option("--markdown", is_flag=True, help="Print the specification as Markdown.")
@click.option("--html", metavar="FILE", help="Write the specification as one HTML page. `-` is standard output.")
@click.option(
    "--cases",
    metavar="FILE",
    help="Write the suite's literal cases as JSON, for use from any language. `-` is standard output.",
)
@click.option(
    "--edition",
    metavar="DIR",
    help="Write the specification of one profile as Markdown, a page per chapter, with its exchanges; default: kvref.",
)
@click.option(
    "--json",
    "as_json",
    metavar="FILE",
    help="Write the specification of one profile as JSON, with cases, replies and grammar. `-` is standard output.",
)
@click.option("--diff", metavar="OLD", help="Print what has changed since an earlier --json file of the same profile.")
@click.option(
    "--compare",
    metavar="NAME",
    shell_complete=completion.profile,
    help="Print what differs between the profile and this one.",
)
@click.option(
    "--coverage",
    "as_coverage",
    is_flag=True,
    help="Print the cases and recordings that cover each requirement, one line per requirement.",
)
def command(  # noqa: PLR0913 - one option a way of showing
    identifiers: tuple[str, ...],
    chapters: tuple[str, ...],
    profile: str | None,
    level: str | None,
    html: str | None,
    cases: str | None,
    *,
    edition: str | None,
    as_json: str | None,
    diff: str | None,
    compare: str | None,
    as_list: bool,
    contradictions: bool,
    markdown: bool,
    as_coverage: bool,
) -> None:
    """Show requirements, by ID or by filter. Without arguments, list the chapters.

    An ID has the form KV-MAP-001.
    """
    try:
        if as_coverage:
            click.echo(_views("--coverage").coverage(), nl=False)
            return
        selected = _selected(identifiers, chapters, profile, level)
        if edition or as_json or diff or compare:
            _write_edition(profile or "kvref", edition, as_json, diff, compare)
        elif cases is not None:
            output.write(cases, _views("--cases").cases(selected, profile or "kvref"))
        elif html is not None:
            output.write(html, _views("--html").html(selected))
        elif markdown:
            click.echo(_views("--markdown").markdown(selected), nl=False)
        elif as_list:
            click.echo("\n".join(terminal.listing(selected.values())))
        else:
            output.print_results(*_results(selected, contradictions=contradictions))
    except SuiteError as error:
        raise KvrefError(str(error)) from error


def _write_edition(profile: str, folder: str | None, file: str | None, old: str | None, other: str | None) -> None:
    """Write a folder, a file, a changelog and a comparison, each if its option is given."""
    _check_profile(other)
    if folder is not None:
        for name, text in _views("--edition").pages(profile).items():
            output.write(str(Path(folder) / name), text, parents=True)
    if file is not None:
        output.write(file, _views("--json").as_json(profile))
    if old is not None:
        click.echo(_views("--diff").changelog(Path(old)), nl=False)
    if other is not None:
        click.echo(_views("--compare").differences(profile, other), nl=False)


def _check_profile(name: str | None) -> None:
    if name is not None and name not in profiles.names():
        raise KvrefError(f"no profile {name!r}{choices(name, profiles.names())}")


def _views(option: str) -> Any:
    """Return the suite's views (`kvref_conformance/spec/views.py`).

    Raises:
        KvrefError: the suite, which the option needs, is not installed.
    """
    views = provided(VIEWS)
    if views is None:
        raise KvrefError(f"`kvref spec {option}` {not_installed('conformance')}")
    return views


def _results(selected: Mapping[str, Requirement], *, contradictions: bool) -> Iterator[RenderableType]:
    if contradictions:
        yield terminal.register(selected.values())
    elif len(selected) == len(requirements.load()):
        yield terminal.overview()
        yield "kvref spec KV-MAP-001 shows one, --chapter mapping a chapter, --html FILE all of them."
    else:
        views = provided(VIEWS)
        for each in selected.values():
            yield terminal.requirement_view(each, terminal.SuiteEvidence() if views is None else views.evidence(each))
        if views is None:
            yield Text(f"Cases and recorded conversations: {install('conformance')}")


def _selected(
    identifiers: tuple[str, ...], chapters: tuple[str, ...], profile: str | None, level: str | None
) -> Mapping[str, Requirement]:
    catalogue = requirements.load()
    for identifier in identifiers:
        if identifier.upper() not in catalogue:
            near = suggestion(identifier, catalogue) or suggestion(identifier, requirements.CHAPTERS)
            if identifier in requirements.CHAPTERS:
                near = f", did you mean --chapter {identifier}"
            raise KvrefError(f"no requirement {identifier!r}{near}: `kvref spec --list` lists all")
    _check_profile(profile)
    for chapter in chapters:
        if not any(chapter in {each.chapter, each.area} for each in catalogue.values()):
            areas = dict.fromkeys(each.area for each in catalogue.values())
            raise KvrefError(f"no chapter or area {chapter!r}{choices(chapter, (*requirements.CHAPTERS, *areas))}")
    named = {identifier.upper() for identifier in identifiers}
    return {
        each.id: each
        for each in catalogue.values()
        if (not named or each.id in named)
        and (not chapters or each.chapter in chapters or each.area in chapters)
        and (profile is None or each.applies_to(profile))
        and (level is None or each.level == level)
    }
