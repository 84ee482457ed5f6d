"""HTML pages that need nothing else: one layout with its style and filter, and a folder of templates for each page."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kvref.errors import printable
from kvref_conformance.judging.conversation import shown

MARKS: Final = (
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"<b>\1</b>"),
    (re.compile(r"(?<!\*)\*([^*]+)\*(?!\*)"), r"<em>\1</em>"),
)


def render(template: str, *styles: str, **context: object) -> str:
    """Return a page.

    Args:
        template: path below this package; its folder has the `page.css` of the page.
        styles: folders whose `page.css` comes before that one.
        context: names of the template. A name that it lacks is an error.
    """
    folders = (*styles, template.partition("/")[0])
    style = asset("base.css") + Markup().join(asset(f"{folder}/page.css") for folder in folders)
    return environment().get_template(template).render(style=style, script=asset("filter.js"), **context)


def environment() -> Environment:
    """Return the template environment, which escapes and rejects unknown names."""
    made = Environment(
        loader=PackageLoader(__package__, ""), autoescape=True, undefined=StrictUndefined, finalize=_finalize
    )
    made.filters.update(shown=shown, prose=prose, lines=_lines, slug=_slug)
    return made


def asset(path: str) -> Markup:
    """Return a style or a script of this package, for inclusion in a page."""
    # Our own file, not input: nothing in it may be escaped.
    return Markup(files(__package__).joinpath(path).read_text(encoding="utf-8"))  # noqa: S704


def prose(text: str) -> Markup:
    """Return a sentence of the catalogue as HTML: back quotes are code, asterisks are emphasis."""
    marked = str(escape(text))
    for pattern, replacement in MARKS:
        marked = pattern.sub(replacement, marked)
    return Markup(marked)  # noqa: S704 - escaped above


def _finalize(value: object) -> object:
    """Return what a page shows of a value: text of endpoints and files without control characters."""
    return printable(value, keep="\n\t") if isinstance(value, str) and not isinstance(value, Markup) else value


def _lines(text: str) -> str:
    # A line of the protocol on its own line.
    return text.replace(r"\r\n", "\\r\\n\n").removesuffix("\n")


def _slug(word: str) -> str:
    return word.replace(" ", "-")
