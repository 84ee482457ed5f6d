"""The notebooks are clean files, run on the committed small runs without a warning, and say what they said."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest

from kvref_bench.errors import BenchError
from support import execution

if TYPE_CHECKING:
    from nbformat import NotebookNode

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
SMALL = FOLDER / "data" / "small"
# What readers see, and what texts are compared on.
SCALES = ("laptop", "small")
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
EXPECTED = Path(__file__).with_name("expected")
LONGEST_CELL = 10
OPENS = "**The question.** "
ENDS = "**The answer.** "


def code(notebook: NotebookNode) -> list[str]:
    """Return the code of a notebook's cells."""
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def read(path: Path) -> NotebookNode:
    """Read a notebook as it is."""
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def test_there_are_five() -> None:
    assert [path.name[:2] for path in NOTEBOOKS] == [f"{number:02d}" for number in range(1, 6)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_a_clean_file(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata.kernelspec.name == "python3"
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not cell.outputs, "clear the outputs: jupyter nbconvert --clear-output --inplace"
            assert cell.execution_count is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_logic_is_in_functions_and_not_in_cells(path: Path) -> None:
    for source in code(read(path)):
        lines = [line for line in source.splitlines() if line.strip() and not re.match("(from|import) ", line)]
        assert len(lines) <= LONGEST_CELL
        written = [type(node).__name__ for node in ast.walk(ast.parse(source))]
        assert not {"FunctionDef", "ClassDef", "For", "While", "Try"} & set(written)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_list_has_the_question_of_every_notebook(path: Path) -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{re.escape(path.name)}` \| .{{30,}}[?] \|$", page, re.MULTILINE)


Executed = dict[str, dict[str, "NotebookNode"]]


@pytest.fixture(scope="module")
def executed() -> Executed:
    """Execute all of them once on each scale; pages and charts are left in `build/notebooks/SCALE`."""
    found: Executed = {}
    for scale in SCALES:
        found[scale] = {}
        for path, notebook in execution.execute(NOTEBOOKS, FOLDER / "data" / scale):
            found[scale][path.stem] = notebook
            execution.write(ROOT / "build" / "notebooks" / scale, path, notebook)
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_opens_with_its_question_and_ends_with_an_answer(executed: Executed, path: Path, scale: str) -> None:
    cells = executed[scale][path.stem].cells
    shown = [output.data.get("text/markdown", "") for cell in cells for output in cell.get("outputs", ())]
    assert shown[0].startswith(OPENS)
    assert shown[-1].startswith(ENDS)
    assert re.fullmatch(r".{30,}[.]", shown[-1].removeprefix(ENDS).splitlines()[0]), "a sentence"
    assert sum(each.startswith(ENDS) for each in shown) == 1


@pytest.mark.nightly
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_tables_and_the_answer_are_the_same_bytes(executed: Executed, path: Path) -> None:
    expected = (EXPECTED / f"{path.stem}.txt").read_text(encoding="utf-8")
    assert execution.texts(executed["small"][path.stem]) == expected, (
        "if that is wanted: write them anew, see notebooks/README.md"
    )


@pytest.mark.nightly
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_charts_are_whole_slides(executed: Executed, path: Path, scale: str) -> None:
    pictures = execution.pictures(executed[scale][path.stem])
    assert pictures
    for each in pictures:
        width, height = (int.from_bytes(each[start : start + 4]) for start in (16, 20))
        assert (width, height) == (1920, 1080)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("import warnings\nwarnings.warn('too few')", Exception, "too few"),
        ("import sys\nprint('careful', file=sys.stderr)", BenchError, "careful"),
    ],
)
def test_what_goes_wrong_in_a_cell_fails(tmp_path: Path, source: str, error: type[Exception], message: str) -> None:
    shutil.copy(NOTEBOOKS[0], tmp_path / "broken.ipynb")
    notebook = read(tmp_path / "broken.ipynb")
    notebook.cells = [nbformat.v4.new_code_cell(source)]
    nbformat.write(notebook, tmp_path / "broken.ipynb")
    with pytest.raises(error, match=message):
        list(execution.execute([tmp_path / "broken.ipynb"], SMALL))
