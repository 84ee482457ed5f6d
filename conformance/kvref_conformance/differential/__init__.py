"""Differential testing: generated conversations run on two servers, comparing every reply and every row.

A seed determines worlds (`worlds.py`: tables from `shapes.py`, rows from `cells.py`) and conversations in them
(`generate.py`, with lines from `lines.py`, binary frames from `requests.py` and words of both from `words.py`;
`exclusions.toml` excludes what ends a server). `run.py` runs them: `exchange.py` sends and receives, `compare.py`,
`compare_frames.py` and `player.py` find the first difference, `known_differences.toml` explains some, `shrink.py` and
`shrink_frames.py` reduce the others, `report.py` prints them. Begin with `run.py`, `generate.py` and `frames.py`.

A conversation has the format of `corpus`: a difference is saved as a script that can be recorded and replayed.
"""
