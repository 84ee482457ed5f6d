"""The judge: does an endpoint follow the rules of memcached over SQL tables?

It has codecs and models of its own: it imports only data (profiles, requirements, deviations) from `kvref`.

Read next: `plugin.py` (the pytest plugin: options and phases of a run), `cases/` (the literal cases by chapter),
`running/` (a run, from its options to the exit code), `judging/` (one case), `endpoints/` (the endpoint and its
features), `wire/` (the protocols), `stateful/` (generated conversations and their models), `differential/` (generated
conversations on two endpoints), `corpus/` (recorded conversations), `sql/` (the endpoint's tables), `reports/`.

Every conversation is a sequence of the steps in `steps/`, which has their JSON schema: literal cases, replay files,
exported cases, recordings and recorded traffic are written so. `judging/player.py` plays them over
`wire/connection.py` and `wire/frames.py`, the codec of the binary protocol. Conversations differ in where a reply ends
and what it is used for: `judging/conversation.py`, which judges, sends a sentinel; `corpus/silences.py`, which must not
change what is recorded, waits for silence; `traffic/replay.py`, which compares with recorded replies, reads as the
protocol says.
"""

from __future__ import annotations

from kvref import __version__

__all__ = ["__version__"]
