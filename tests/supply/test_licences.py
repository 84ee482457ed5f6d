"""The license of each locked package requires no more than its notice, or the package is listed here with a reason."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError

import pytest
from packaging.utils import canonicalize_name
from supply.locked import licences

STRICT = {"MIT", "BSD", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0"}
ALLOWED = STRICT | {"0BSD", "ISC", "MIT-0", "MIT-CMU", "PSF-2.0", "Zlib"}
# None of them is part of kvref, and nothing of them is changed.
EXCEPTIONS = {
    "hypothesis": ("MPL-2.0", "runs tests and the suite; its terms bind changed files of its own"),
    "pathspec": ("MPL-2.0", "comes with mypy; as above"),
    "numpy": ("CC0-1.0", "a part of it is in the public domain"),
    "certifi": ("MPL-2.0", "comes with Sphinx, which builds the site; a list of certificates"),
    "docutils": (
        "GNU General Public License (GPL)",
        "comes with Sphinx; the part for the editor Emacs is not installed",
    ),
    "roman-numerals": ("CC0-1.0", "comes with Sphinx; 0BSD may be chosen"),
}
HERE = sorted({pin.name for pin in licences.pins() if pin.marker is None or pin.marker.evaluate()})


def terms(name: str) -> set[str]:
    try:
        stated: str = licences.stated(name)
    except PackageNotFoundError:
        pytest.fail(f"{name} is locked and not installed: run `bash .ci/setup dev`")
    return set(re.split(r" (?:AND|OR) ", stated))


@pytest.mark.parametrize("name", HERE)
def test_a_licence_is_one_of_those_that_are_taken(name: str) -> None:
    allowed = ALLOWED | {EXCEPTIONS[name][0]} if name in EXCEPTIONS else ALLOWED
    assert terms(name) <= allowed, f"{name} states {terms(name)}"


def test_what_serving_needs_is_strictly_permissive() -> None:
    needed = licences.serving()
    for name in needed:
        assert terms(name) <= STRICT, f"{name} states {terms(name)}"
    assert {"click", "uvloop"} <= needed <= {canonicalize_name(each) for each in HERE}


def test_the_exceptions_are_needed() -> None:
    assert all(licence in terms(name) for name, (licence, _) in EXCEPTIONS.items())


def test_the_page_is_as_written() -> None:
    rows = {line for line in licences.page().splitlines() if line.startswith("|")}
    missing = rows - set(licences.FILE.read_text().splitlines())
    assert not missing, f"run .ci/lock licences: {sorted(missing)}"
