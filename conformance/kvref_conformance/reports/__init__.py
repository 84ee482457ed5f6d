"""Reports: what a run leaves, several reports side by side, and reports over time.

`header.py` and `jsonl.py` write the report of a run, `column.py` reads it, `grid.py` combines several. Every other
module writes one format; `pages` renders HTML.
"""
