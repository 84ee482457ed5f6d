"""What `.ci/licences.py` knows of the lock and of what is installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent.parent
CI = ROOT / ".ci"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("licences", CI / "licences.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


licences = _load()
