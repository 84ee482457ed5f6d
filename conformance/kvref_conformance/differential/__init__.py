"""Differential testing: generated conversations run on two servers, comparing every reply and every row.

hypothesis draws worlds (`worlds.py`) and conversations in them (`generate.py`) of what `kvref_conformance.strategies`
has; `commands.py` distorts some of the commands. `exclusions.toml` excludes what ends a server, and `configuration.py`
says what a run compares. A seed and a number determine each conversation. `run.py` runs them: `exchange.py` sends and
receives, `compare.py` finds the first difference, `kinds.py` names it, `known_differences.toml` explains some,
hypothesis shrinks the others, `report.py` prints them. Begin with `run.py` and `generate.py`.

A conversation has the format of `corpus`: a difference is saved as a script that can be recorded and replayed.
"""
