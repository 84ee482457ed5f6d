"""kvref: memcached over SQL tables, as MySQL's InnoDB memcached plugin had it.

docs/reference/source-code.md describes the packages, docs/explanation/architecture.md the path of a get and a set.
"""

from __future__ import annotations

__version__ = "0.3.0"
