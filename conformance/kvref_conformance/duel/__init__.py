"""The duel: generated conversations held with two servers at once, until every answer and every row is the same.

From a seed come worlds (`worlds.py`: tables from `shapes.py`, rows from `cells.py`) and conversations in them
(`generate.py`, with lines from `lines.py`, frames of the binary protocol from `requests.py` and words of both from
`words.py`; `care.toml` keeps out what ends a server). `run.py` holds them: `exchange.py` talks, `compare.py`,
`compare_frames.py` and `hold.py` find the first difference, `known.toml` explains some, `shrink.py` and
`shrink_frames.py` make the others small, `report.py` shows them. Begin with `run.py`, `generate.py` and `frames.py`.

A conversation is one of `transcripts`: a difference is saved as a script that can be recorded and replayed.
"""
