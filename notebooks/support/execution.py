"""Run the notebooks as they are, in a real kernel, and keep what they show.

    python notebooks/support/execution.py notebooks build/notebooks [--texts tests/notebooks/expected]

One kernel serves all of them, emptied between two: nine starts take longer than the notebooks.
"""

from __future__ import annotations

import argparse
import base64
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from traitlets.config import Config

from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nbformat import NotebookNode

LIMIT: Final = 60  # seconds of one cell
# Tables come out whole, and the same on every terminal; a warning is an exception.
EMPTY: Final = """%reset -f
import warnings
import pandas as pd
pd.set_option("display.max_rows", None, "display.max_columns", None, "display.width", 240, "display.max_colwidth", None)
warnings.resetwarnings()
warnings.simplefilter("error")
"""
CALM: Final = 'import warnings; warnings.simplefilter("ignore")'  # its own end is not ours to judge


def execute(paths: Iterable[Path], runs: Path | None = None) -> Iterator[tuple[Path, NotebookNode]]:
    """Execute notebooks one after the other and give each with its outputs.

    runs: folder of runs they read, in place of their own default (`KVREF_RUNS`).

    Raises nbclient's CellExecutionError on an exception or a warning in a cell, and BenchError when a cell wrote to
    its standard error.
    """
    files = sorted(paths)
    environment = dict(os.environ)
    if runs is not None:
        environment["KVREF_RUNS"] = str(runs.resolve())
    with _client() as client, client.setup_kernel(cwd=str(files[0].parent.resolve()), env=environment):
        for path in files:
            notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
            notebook.cells.insert(0, nbformat.v4.new_code_cell(EMPTY))  # type: ignore[no-untyped-call]
            client.nb = notebook
            client.reset_execution_trackers()
            for number, cell in enumerate(notebook.cells):
                client.execute_cell(cell, number)
            del notebook.cells[0]
            _refuse_complaints(path, notebook)
            yield path, notebook
        client.nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CALM)])  # type: ignore[no-untyped-call]
        client.execute_cell(client.nb.cells[0], 0)


@contextmanager
def _client() -> Iterator[NotebookClient]:
    """Yield a client whose kernel listens on Unix sockets: over TCP it warns that other accounts could read along."""
    with tempfile.TemporaryDirectory() as folder:
        sockets = Config(KernelManager={"transport": "ipc", "ip": f"{folder}/kernel"})
        empty = nbformat.v4.new_notebook()  # type: ignore[no-untyped-call]
        yield NotebookClient(empty, kernel_name="python3", timeout=LIMIT, config=sockets)


def _refuse_complaints(path: Path, notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream" and output.name == "stderr":
                raise BenchError(f"{path.name}: a cell wrote to its standard error: {output.text.strip()[:500]}")


def texts(notebook: NotebookNode) -> str:
    """Return what an executed notebook says in words and tables: its outputs as plain text, in order."""
    parts: list[str] = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if output.output_type == "stream":
                parts.append(output.text)
            elif "image/png" not in data:
                parts.append(data.get("text/markdown") or data.get("text/plain", ""))
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def pictures(notebook: NotebookNode) -> list[bytes]:
    """Return the charts of an executed notebook as PNG files, in order."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [base64.b64decode(each.data["image/png"]) for each in outputs if "image/png" in each.get("data", {})]


def write(folder: Path, path: Path, notebook: NotebookNode) -> None:
    """Write an executed notebook as HTML page, each of its charts as PNG and its words as text into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    page, _ = HTMLExporter().from_notebook_node(notebook)  # type: ignore[no-untyped-call]
    (folder / f"{path.stem}.html").write_text(page, encoding="utf-8")
    (folder / f"{path.stem}.txt").write_text(texts(notebook), encoding="utf-8")
    for number, picture in enumerate(pictures(notebook), start=1):
        (folder / f"{path.stem}-{number}.png").write_bytes(picture)


def main() -> None:
    """Execute the notebooks of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", type=Path, help="folder, or one notebook")
    parser.add_argument("out", type=Path, help="folder for HTML pages, charts and texts")
    parser.add_argument("--runs", type=Path, help="folder of runs; default: the notebooks' own")
    parser.add_argument("--texts", type=Path, help="folder that gets the words and tables alone")
    given = parser.parse_args()
    found = [given.notebooks] if given.notebooks.is_file() else sorted(given.notebooks.glob("*.ipynb"))
    for path, notebook in execute(found, given.runs):
        write(given.out, path, notebook)
        if given.texts:
            given.texts.mkdir(parents=True, exist_ok=True)
            (given.texts / f"{path.stem}.txt").write_text(texts(notebook), encoding="utf-8")


if __name__ == "__main__":
    main()
