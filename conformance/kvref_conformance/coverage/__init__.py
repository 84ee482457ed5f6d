"""What a run covered: verbs by key shapes, mapping states by batch states, and combinations of the configuration.

Every sender passes its requests to `collect.Exercised`, which keeps only counts. `requests.py` splits bytes into
requests (`verbs.py`), `key_shapes.py` classifies their keys, `connection_state.py` follows the binding and the open
transaction of a connection, `configuration.py` describes the configuration of a case, `combinations.py` counts the
combinations that occurred, and `summary.py` writes the section of the report.
"""

from __future__ import annotations

from kvref_conformance.coverage.collect import Exercised

__all__ = ["Exercised"]
