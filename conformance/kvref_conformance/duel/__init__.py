"""The duel: run generated conversations on two servers at once and compare every answer and every row.

A seed determines worlds (`worlds.py`: tables from `shapes.py`, rows from `cells.py`) and conversations in them
(`generate.py`, with lines from `lines.py`, frames of the binary protocol from `requests.py` and words of both from
`words.py`; `care.toml` excludes what ends a server). `run.py` runs them: `exchange.py` sends and receives,
`compare.py`, `compare_frames.py` and `hold.py` find the first difference, `known.toml` explains some, `shrink.py` and
`shrink_frames.py` shrink the others, `report.py` prints them. Begin with `run.py`, `generate.py` and `frames.py`.

A conversation is one of `transcripts`: a difference is saved as a script that can be recorded and replayed.
"""
