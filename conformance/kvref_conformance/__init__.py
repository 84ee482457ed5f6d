"""The judge: does an endpoint keep the rules of memcached over SQL tables?

It owns its bytes: nothing here comes from the server it may be aimed at but the facts of `kvref.profiles`.

Read next: `plugin.py` (options and the course of a run), `cases/` (the conversations, chapter by chapter),
`requirements/` (the sentences they test), `deviations/` (where the C plugin is known to break one), `machine/` (random
conversations and the model that judges them), `sql/` (the view behind the protocol), `report/` (what a run leaves).
"""

from __future__ import annotations

from kvref import __version__

__all__ = ["__version__"]
