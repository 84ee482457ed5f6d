"""The judge: does an endpoint follow the rules of memcached over SQL tables?

It has codecs and models of its own: it imports only data (profiles, requirements, deviations) from `kvref`.

Read next: `plugin.py` (the pytest plugin: options and phases of a run), `cases/` (the literal cases by chapter),
`stateful/` (generated conversations and their models), `differential/` (generated conversations on two endpoints),
`corpus/` (recorded conversations), `sql/` (the endpoint's tables), `report/` and `matrix/` (output).

Every conversation is a sequence of the steps in `steps/`, which has their JSON schema: those of literal cases, replay
files and exported cases are written so, and `corpus/loader.py` converts recordings. `player.py` plays them over
`connection.py` and `frames.py`, the codec of the binary protocol. Where a reply ends is the one thing in which players
differ: `conversation.py`, which judges, sends a sentinel; `corpus/silences.py`, which must not change what is recorded,
waits for silence.
"""

from __future__ import annotations

from kvref import __version__

__all__ = ["__version__"]
