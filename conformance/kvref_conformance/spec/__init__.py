"""The specification: the catalogue of requirements put together with what judges, shows and breaks it.

Nothing here is normative; the sentences stand in `requirements/`, the conversations in `corpus/`. Reading path:
`entry.py` (one requirement with all that is known of it), `example.py` (a recording as lines), then what shows them:
`terminal.py`, `page.py`; `coverage.py` counts.
"""
