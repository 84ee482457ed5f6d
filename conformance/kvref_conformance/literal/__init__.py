"""The cases without Python: JSON that a program in any language can read, with requests and allowed replies.

`export.py` makes it, `steps.py` writes the steps, `schema.json` defines the format. Keys and tables have names, lengths
are computed, facts of the profile are resolved; values that only a run determines are holes.
"""
