"""Pages that need nothing else: what the report and the specification share, palette, filter and template engine."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kvref.errors import printable
from kvref_conformance.conversation import shown


def environment(kind: str) -> Environment:
    """Return a template environment that escapes, refuses unknown names and knows `shown`.

    Args:
        kind: folder of this package with the templates.
    """
    made = Environment(
        loader=PackageLoader(__package__, kind),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=False,
    )
    made.filters["shown"] = shown
    return made


def _finalize(value: object) -> object:
    """Return what a page shows of a value: text of endpoints and files without control characters."""
    return printable(value, keep="\n\t") if isinstance(value, str) and not isinstance(value, Markup) else value


def inside(kind: str) -> dict[str, Markup]:
    """Return what a page carries inside itself: the common style with its own, and the filter script."""
    return {"style": asset("base.css") + asset(f"{kind}/page.css"), "script": asset("filter.js")}


def asset(path: str) -> Markup:
    """Return a style or a script of this package, for inclusion in a page."""
    # Our own file, not input: nothing in it may be escaped.
    return Markup(files(__package__).joinpath(path).read_text(encoding="utf-8"))  # noqa: S704
