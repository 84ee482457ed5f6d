"""Whether this kvref is a build whose hot path is compiled from the same sources (`.ci/build-compiled`)."""

from __future__ import annotations

from importlib.util import find_spec


def is_compiled() -> bool:
    """Return whether modules of the hot path are extension modules."""
    spec = find_spec("kvref.protocol.text")
    return spec is not None and spec.origin is not None and not spec.origin.endswith(".py")
