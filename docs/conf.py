"""Configuration of the documentation site: `bash .ci/docs` builds it in strict mode."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent / "notebooks")]

import generators  # noqa: E402 - the folder is on the path from here on
import kvref  # noqa: E402
from generators import matrix  # noqa: E402
from generators.roles import setup_roles  # noqa: E402

PROJECT = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCE = PROJECT["urls"]["Source"]

project = "kvref"
author = "The kvref authors"
copyright = "the kvref authors, Apache License 2.0"  # noqa: A001 - Sphinx's name
version = release = kvref.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["generators", "_static"]
nitpicky = True
smartquotes = False  # they would change `--option`
# The reference describes kvref's own names; annotations of other libraries are plain text.
# Type variables and types of annotations that no page describes.
_UNDESCRIBED = r"kvref\.client\.(\w+\.)*([A-Z]|Row|Rules|\w*Connection[sT]?|BytesOptions|Serde|Bound\w+)"
nitpick_ignore_regex = [("py:.*", r"(?!kvref).*"), ("py:(class|obj)", _UNDESCRIBED)]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
# A signature names these unions, which the page of options describes.
autodoc_type_aliases = {name: name for name in ("ColumnsSpec", "Key", "Server", "Value")}
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False

# The workflow `release` sets KVREF_DOCS_RELEASE; all other builds describe the main branch.
ANNOUNCEMENT = (
    ""
    if "KVREF_DOCS_RELEASE" in os.environ
    else f"Main branch: <a href='{PROJECT['urls']['Documentation']}versions.html'>all versions</a>"
)
html_theme = "furo"
html_title = f"kvref {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(DOCS / "_static" / "scorer.js")
EXTRA = DOCS.parent / "build" / "docs" / "extra"
html_extra_path = [str(EXTRA)]
html_theme_options = {
    "source_repository": SOURCE,
    "source_branch": "main",
    "source_directory": "docs/",
    "announcement": ANNOUNCEMENT,
}
html_split_index = True  # requirement IDs are most of it
html_show_sourcelink = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# `.ci/docs links` requests pages of other sites.
linkcheck_anchors = False
linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_ignore = [r"https?://(localhost|127\.0\.0\.1)", rf"{SOURCE}.*", rf"{PROJECT['urls']['Documentation']}.*"]

generators.write_all(DOCS)
matrix.write(EXTRA / "matrix")


def setup(app: object) -> None:
    """Add the roles of the site."""
    setup_roles(app, SOURCE, DOCS.parent)
