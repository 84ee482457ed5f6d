"""The role `src`: a link to a file of the repository, which must exist."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    from pathlib import Path


def setup_roles(app: Any, source: str, root: Path) -> None:
    """Add the roles.

    Args:
        app: Sphinx's application.
        source: URL of the repository.
        root: folder of the repository.
    """
    app.add_role("src", partial(_src, source, root))


def _src(
    source: str, root: Path, _name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_others: object
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Return the link, or an error where there is no such file or folder."""
    path = root / text
    if not path.exists():
        message = inliner.reporter.error(f"src: no file {text!r} in the repository", line=lineno)
        return [inliner.problematic(rawtext, rawtext, message)], [message]
    kind = "tree" if path.is_dir() else "blob"
    link = nodes.reference(rawtext, "", nodes.literal("", text), refuri=f"{source}/{kind}/main/{text}")
    return [link], []
