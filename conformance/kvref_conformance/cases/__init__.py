"""The conversations, one file a chapter: `CASES` is data, the one test function judges each of them.

A case names the requirements it tests; its steps are bytes typed by hand from the recordings, articles and manuals.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

from kvref.errors import SuiteError

if TYPE_CHECKING:
    from kvref_conformance.case import Case

# The order of a run: from the basic protocol to cases that need another configuration of the endpoint.
CHAPTERS: Final = (
    "storage",
    "retrieval",
    "arithmetic",
    "delete_flush",
    "limits",
    "connection",
    "between",
    "touch",
    "meta_get",
    "meta_set",
    "meta_delete",
    "meta_arithmetic",
    "meta_commands",
    "mapping",
    "mapping_words",
    "multiget",
    "ranges",
    "bind",
    "stats",
    "crawler",
    "behind_sql",
    "expiry",
    "cas",
    "columns",
    "columns_changed",
    "arithmetic_columns",
    "key_column",
    "key_text",
    "key_index",
    "value_column",
    "value_integer",
    "value_raw",
    "nulls",
    "optional_columns",
    "table",
    "order",
    "containers",
    "plugin_text",
    "plugin_mapping",
    "binary_frames",
    "binary_lengths",
    "binary_get",
    "binary_store",
    "binary_widths",
    "binary_quiet",
    "binary_commands",
    "binary_arithmetic",
    "binary_mapping",
    "binary_ranges",
    "binary_stat",
    "commands",
    "arguments",
    "schemas",
    "separator",
    "delimiter",
    "configuration",
    "default_mapping",
    "reload",
    "cache_policies",
    "tables_changed",
    "write_batch",
    "batch_ends",
    "failed_write",
    "unfit_key",
    "read_batch",
    "isolation",
    "locks",
    "lock_wait",
    "table_locks",
    "idle_commit",
    "binlog",
    "batch_settings",
    "concurrency",
)


def by_chapter() -> dict[str, tuple[Case, ...]]:
    """Return the cases of each chapter, in the order of CHAPTERS."""
    return {chapter: importlib.import_module(f"{__name__}.test_{chapter}").CASES for chapter in CHAPTERS}


def all_cases() -> list[Case]:
    """Return every case of the suite.

    Raises:
        SuiteError: two cases have one id.
    """
    cases = [case for chapter in by_chapter().values() for case in chapter]
    ids = [case.id for case in cases]
    if twice := {name for name in ids if ids.count(name) > 1}:
        raise SuiteError(f"two cases are named {', '.join(sorted(twice))}")
    return cases
