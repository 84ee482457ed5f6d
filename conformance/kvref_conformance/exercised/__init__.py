"""What a run exercised: verbs x key shapes, mapping state x batch state, and the combinations of the configuration.

Whoever sends hands each request to `collect.Exercised`, which keeps counts alone. `requests.py` takes bytes apart into
requests (`verbs.py`), `key_shapes.py` classifies their keys, `connection.py` follows what a connection has bound and
not yet committed, `configuration.py` says what a case runs under, `combinations.py` which levels have met, and
`told.py` makes the section of the report.
"""

from __future__ import annotations

from kvref_conformance.exercised.collect import Exercised

__all__ = ["Exercised"]
