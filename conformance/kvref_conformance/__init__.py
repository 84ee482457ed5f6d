"""The judge: does an endpoint follow the rules of memcached over SQL tables?

It has codecs and models of its own: it imports only data (profiles, requirements, deviations) from `kvref`.

Read next: `plugin.py` (the pytest plugin: options and phases of a run), `cases/` (the literal cases by chapter),
`stateful/` (generated conversations and their models), `differential/` (generated conversations on two endpoints),
`corpus/` (recorded conversations), `sql/` (the endpoint's tables), `report/` and `matrix/` (output).
"""

from __future__ import annotations

from kvref import __version__

__all__ = ["__version__"]
