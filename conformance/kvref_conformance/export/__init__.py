"""The cases without Python: JSON that an implementer in any language can send and compare.

`cases.py` exports the cases; `steps/forms.py` writes their steps, and `steps/schema.json` defines the format.
Keys and tables have names, lengths are computed, facts of the profile are filled in;
values known only during a run remain holes.
"""
