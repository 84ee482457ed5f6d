"""Identifiers of generated cases, for who reads the catalogue without its generators."""

from __future__ import annotations

from typing import Final

ANY_TABLE: Final = "any-table"
ANY_ROW: Final = "any-row-of-containers"
ANY_CONFIGURATION: Final = "any-delimiter-and-separator"
SIMULTANEOUS: Final = "simultaneous-commands"
