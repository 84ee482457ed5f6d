"""The cases without Python: JSON in which a reader of any language finds what to send and what may come.

`export.py` makes it, `steps.py` writes the steps, `schema.json` says exactly what may stand there. Keys and tables have
names, lengths are counted, facts of the profile are answered; what only a run can know is left as a hole.
"""
