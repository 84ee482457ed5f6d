"""The list of what does not replay: strict to read, and the text that counts it says the same."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from kvref.errors import SuiteError
from kvref_conformance import corpus
from kvref_conformance.corpus import listing

pytestmark = pytest.mark.nightly

ROW = '[[row]]\nconversations = ["core:map-0?1", "tx:*"]\nversions = ["8.0.33"]\nclass = "crash"\nreason = "it ends"\n'


def test_glob_that_fits_nothing_is_named() -> None:
    rows = listing.parse(ROW)
    assert listing.idle(rows, {("core:map-001", "8.0.33"), ("tx:a", "5.6.14")}) == ["tx:* (8.0.33)"]
    assert listing.idle(rows, {("core:map-001", "8.0.33"), ("tx:a", "8.0.33")}) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('class = "crash"', 'class = "bad luck"'), "no class 'bad luck'"),
        (('reason = "it ends"\n', ""), "not_replayed.toml: row 1: no reason: a row has conversations, class, reason"),
        (('reason = "it ends"', 'reason = ""'), "row 1: reason is empty: a row has conversations, class, reason"),
        (('reason = "it ends"', "reason = 7"), "row 1.reason: 7 is not str"),
        (('reason = "it ends"', 'cause = "it ends"'), "row 1: no reason"),
        (('reason = "it ends"', 'reason = "it ends"\nmore = "x"'), "row 1: unknown 'more'"),
        (("[[row]]", "[[rows]]"), "unknown rows"),
        (("[[row]]", "[[row"), "not_replayed.toml: "),
    ],
)
def test_malformed_list_is_refused(change: tuple[str, str], complaint: str) -> None:
    with pytest.raises(SuiteError, match=re.escape(complaint)):
        listing.parse(ROW.replace(*change))


@pytest.mark.parametrize("target", ["", *listing.INNODB_TARGETS])
def test_no_conversation_is_listed_twice(target: str) -> None:
    rows = listing.load(target)
    for name in corpus.SETS:
        for key, conversation in corpus.load(name).items():
            for version in conversation.versions():
                fitting = [row for row in rows if row.fits(f"{name}:{key}", version)]
                assert len(fitting) < 2, (name, key, version)


def test_readme_counts_what_is_listed() -> None:
    """The section of README.md between the two marks is what `listing.page` writes."""
    readme = files(corpus).joinpath("README.md").read_text(encoding="utf-8")
    assert listing.page() in readme
    assert listing.innodb_page() in readme
