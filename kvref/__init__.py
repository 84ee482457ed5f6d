"""kvref: memcached over SQL tables, as MySQL's InnoDB memcached plugin had it.

Start reading in README.md ("Reading path"); the rooms of this package are described there.
"""

from __future__ import annotations

__version__ = "0.1.0"
