"""The notebooks, executed on the committed runs: one page each, charts as pictures with alternative text."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import nbformat

from generators.markup import folded, folded_markdown, page, prose, table
from support import answer, execution

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nbformat import NotebookNode

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ROOT / "notebooks"
RUNS: Final = SOURCES / "data" / "laptop"
CACHE: Final = ROOT / "build" / "docs" / "notebooks"
FOLDER: Final = "explanation/notebooks"
# Of a table on the page; a longer one is folded, since on a phone a row takes up to four lines.
MAX_ROWS: Final = 12
SET_UP: Final = """:::{{note}}
These runs measured {setting}. Server and load generator share the cores. Compare ratios within this page; rates of
other pages have [other set-ups](../speed.md#why-figures-differ-between-set-ups).
:::"""


def pages() -> Mapping[str, str | bytes]:
    """Return the page of each notebook with its charts, and their index.

    Executed notebooks are kept in `build/docs/notebooks` until a notebook, a run or their functions change.
    """
    made: dict[str, str | bytes] = {}
    titles = {}
    for name, notebook in _executed().items():
        text, charts = _page(name, notebook)
        titles[name] = text.partition("\n")[0].removeprefix("# ")
        made[f"{FOLDER}/{name}.md"] = text
        made |= {f"{FOLDER}/{file}": picture for file, picture in charts.items()}
    rows = [(f"[{prose(title)}]({name}.md)",) for name, title in titles.items()]
    made[f"{FOLDER}/index.md"] = page(
        "Notebooks",
        "Each notebook asks a question, draws what committed runs of `kvref bench run` show, and ends with an answer. "
        f"The runs measured {_setting()}. "
        "Server and load generator share the cores: compare ratios, not absolute rates. "
        "The sources are in {src}`notebooks`.",
        table(("notebook",), rows),
        "```{toctree}\n:hidden:\n\n" + "\n".join(titles) + "\n```",
        anchor="notebooks",
    )
    return made


def computed_table(html: str) -> str:
    """Return a table of pandas as HTML in the style of the site, in a box that scrolls.

    Its index is left out if it only numbers the rows. The reader opens a table of many rows.
    """
    html = re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL)
    numbers = re.findall(r"<tr[^>]*>\s*<th[^>]*>([^<]*)</th>", html)
    if numbers == ["", *map(str, range(len(numbers) - 1))]:
        html = re.sub(r"(<tr[^>]*>)\s*<th[^>]*>[^<]*</th>", r"\1", html)
    html = re.sub(r"\n\s*\n", "\n", html).replace(' style="text-align: right;"', "")
    table = html.replace('<table border="1" class="dataframe">', '<table class="docutils computed">')
    whole = f'<div class="table-wrapper container">\n{table}\n</div>'
    rows = table.count("<tr") - table.count("<thead")
    return folded(f"Table of {rows} rows", whole) if rows > MAX_ROWS else whole


def _executed() -> dict[str, NotebookNode]:
    sources = sorted(SOURCES.glob("*.ipynb"))
    kept = CACHE / f"{_digest(sources)}.json"
    if not kept.exists():
        os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
        found = {path.stem: nbformat.writes(notebook) for path, notebook in execution.execute(sources, RUNS)}  # type: ignore[no-untyped-call]
        CACHE.mkdir(parents=True, exist_ok=True)
        for old in CACHE.glob("*.json"):
            old.unlink()
        kept.write_text(json.dumps(found), encoding="utf-8")
    read = json.loads(kept.read_text(encoding="utf-8"))
    return {name: nbformat.reads(text, as_version=4) for name, text in read.items()}  # type: ignore[no-untyped-call]


def _digest(sources: list[Path]) -> str:
    files = [*sources, *sorted(RUNS.rglob("*")), *sorted((SOURCES / "support").glob("*.py"))]
    whole = hashlib.sha256()
    for path in files:
        if path.is_file():
            whole.update(path.name.encode() + path.read_bytes())
    return whole.hexdigest()[:20]


def _page(name: str, notebook: NotebookNode) -> tuple[str, dict[str, bytes]]:
    parts: list[str] = []
    charts: dict[str, bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        # A reader of results opens the code where it is needed.
        parts.append(folded_markdown("Code", f"```python\n{cell.source}\n```"))
        for output in cell.get("outputs", ()):
            parts += _output(name, output, charts)
    first = re.sub(r"^# \d+ ", "# ", parts[0])
    return "\n\n".join([first, SET_UP.format(setting=_setting()), *parts[1:]]) + "\n", charts


@cache
def _setting() -> str:
    """Return version, days and machine of the runs."""
    return answer.setting([json.loads(path.read_text(encoding="utf-8")) for path in sorted(RUNS.glob("*/run.json"))])


def _output(name: str, output: NotebookNode, charts: dict[str, bytes]) -> Iterator[str]:
    data: Mapping[str, Any] = output.get("data", {})
    if "image/png" in data:
        file = f"{name}-{len(charts) + 1}.png"
        charts[file] = base64.b64decode(data["image/png"])
        # The text of a chart is its title: the finding in a sentence.
        yield f"```{{figure}} {file}\n:alt: {data['text/plain']}\n```"
    elif "text/markdown" in data:
        yield data["text/markdown"]
    elif "text/html" in data:
        yield computed_table(data["text/html"])
    else:
        yield f"```text\n{output.get('text') or data.get('text/plain', '')}\n```"
