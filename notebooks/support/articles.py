"""What the articles print: figures as they stand there, and each table row or sentence of them as a ratio."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from importlib.resources import files

import pandas as pd


@dataclass(frozen=True, slots=True)
class Claim:
    """One row of an article's table, or one sentence of it, as a ratio of two sides.

    group: group of rows in an overview. place: where in the article. what: the ratio in words.
    at: sessions of both sides; `best`: each at its fastest.
    published: the ratio, computed from the printed figures; NaN if only words are printed. as_printed: those words.
    relation: of the ratio to 1: `more`, `less`, `same` or `not less`.
    compare, upper, lower, measure: which of our points make the ratio (`sides`); any other text in `compare` is the
    reason why it cannot be measured here. servers, series: patterns of the compared ones; empty: all.
    over: `memcached` or `sql`, empty: both. where: `local` or `remote`, the place of the clients.
    """

    scenario: str
    group: str
    place: str
    what: str
    at: str
    as_printed: str
    published: float
    relation: str
    servers: str
    compare: str
    series: str
    over: str
    upper: str
    lower: str
    where: str
    measure: str
    title: str
    source: str


def claims(scenario: str | None = None) -> list[Claim]:
    """Read the published ratios, of one scenario or of all, in the order of the articles."""
    return [each for each in _claims() if scenario in {None, each.scenario}]


@functools.cache
def _claims() -> tuple[Claim, ...]:
    found = []
    for row in csv.DictReader(_text("claims.csv").splitlines()):
        published = float(row.pop("published") or "nan")
        found.append(Claim(published=published, **row))
    return tuple(found)


def figures() -> pd.DataFrame:
    """Read the published figures, all columns as text; `at`: what the factor was; `as_printed`: the article's words."""
    return pd.DataFrame(list(csv.DictReader(_text("figures.csv").splitlines())))


def _text(name: str) -> str:
    return (files(__package__) / "published" / name).read_text(encoding="utf-8")
