"""The form of statements: RFC 2119 keywords that equal the level, and no answer left to a profile."""

from __future__ import annotations

import re
from dataclasses import replace

from kvref.specification import requirements
from kvref.specification.requirements import Requirement
from kvref_conformance.spec import normative

KEYWORD = re.compile(r"\b(MUST NOT|MUST|SHOULD NOT|SHOULD|MAY)\b")
CODE = re.compile(r"`[^`]*`")
VAGUE = re.compile(r"as the profile|depends on the profile|the profile decides", re.IGNORECASE)
# A second condition, or another command with another reply, in the sentence of the first.
SECOND = re.compile(
    r"; (if|otherwise|a `?\w+`? also|then|it (replies|sends))\b|, and `CODE` otherwise|\bMUST\b.* and, if\b"
)
# Forms that a reader has to decode, and terms that others replace: the current mapping, a loaded mapping.
UNCLEAR = re.compile(
    r"(?<!there )\b(is|are) no (?!longer\b)\w+|\banother \w+ than\b|\b[Nn]either\b.*(?<!MUST )\bnor\b.* MUST (reach|be reached)\b"
    r"|\b(in force|mapping (that is )?in use|anything else than|whichever|is so)\b|\bcan read\b|\b(a|the) (client|key word) MUST\b"
)
# Each requirement, and each with the statement that it has in the edition of one profile.
OBLIGATIONS = tuple(
    replace(each, statement=statement)
    for each in requirements.load().values()
    for statement in (each.statement, *each.instead.values())
)


def keywords(requirement: Requirement) -> list[str]:
    return KEYWORD.findall(CODE.sub("", requirement.statement))


def wanted(requirement: Requirement) -> str:
    """Return the keyword of a level: an observed behavior against a published text is demanded too."""
    return "MUST" if requirement.level == "QUIRK" else requirement.level


def test_the_keyword_of_a_statement_is_its_level() -> None:
    wrong = [
        each.id for each in OBLIGATIONS if {word.removesuffix(" NOT") for word in keywords(each)} != {wanted(each)}
    ]
    assert wrong == []


def test_no_statement_leaves_its_answer_to_the_profile() -> None:
    assert [each.id for each in OBLIGATIONS if VAGUE.search(each.statement)] == []


def test_a_statement_has_one_obligation() -> None:
    assert [each.id for each in OBLIGATIONS if len(keywords(each)) > 1] == [], "split the statement"


def test_a_statement_has_one_condition() -> None:
    assert [each.id for each in OBLIGATIONS if SECOND.search(each.statement)] == [], "split the statement"


def test_no_text_of_the_specification_has_a_form_that_a_reader_decodes() -> None:
    texts = [(each.id, each.statement) for each in OBLIGATIONS]
    texts += [(each.name, each.about) for each in requirements.chapters()]
    texts += [(each.name, line) for each in normative.chapters("kvref") for line in each.body.splitlines()]
    assert [(name, text) for name, text in texts if UNCLEAR.search(text)] == []


def test_an_edition_has_its_own_statement_where_other_profiles_need_a_narrower_one() -> None:
    other = [each for each in requirements.load().values() if each.instead]
    assert len(other) >= 8
    for each in other:
        assert all(each.applies_to(profile) for profile in each.instead)
        assert each.statement_for("kvref") != each.statement
        assert each.statement_for("mysql-8.0") == each.statement
