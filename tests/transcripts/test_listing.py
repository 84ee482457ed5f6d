"""The list of what does not replay: no conversation twice, and the text that counts it says the same."""

from __future__ import annotations

from importlib.resources import files

import pytest

from kvref_conformance import corpus
from kvref_conformance.corpus import listing

pytestmark = pytest.mark.nightly


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
