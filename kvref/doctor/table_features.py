"""Features of the mapped table beside the mapped columns: what writes do to it, and what acts on writes."""

from __future__ import annotations

from typing import Final

from kvref.doctor.key_features import Predicate
from kvref.doctor.subject import Subject


def _nullable(subject: Subject) -> list[str]:
    return [column.name for column in subject.unmapped if column.nullable]


def _not_null(subject: Subject) -> list[str]:
    return [column.name for column in subject.unmapped if not column.nullable]


def _generated(subject: Subject, kind: str) -> list[str]:
    return [column.name for column in subject.details.columns.values() if column.generated == kind]


def _by_another_key(subject: Subject) -> list[str]:
    own = (subject.row.unique_idx_name_on_key or "").lower()
    return [row.name for row in subject.others if (row.unique_idx_name_on_key or "").lower() != own]


def _is_configuration(subject: Subject) -> bool:
    named = (subject.row.db_schema or "").lower(), (subject.row.db_table or "").lower()
    return named == ("innodb_memcache", "containers")


TABLES: Final[dict[str, Predicate]] = {
    "unmapped-nullable": _nullable,
    "unmapped-with-default": lambda s: [c.name for c in s.unmapped if c.default],
    "unmapped-not-null": _not_null,
    "unmapped-not-null-with-default": lambda s: [c.name for c in s.unmapped if not c.nullable and c.default],
    "virtual-column": lambda s: _generated(s, "virtual"),
    "triggers": lambda s: s.details.triggers,
    "checks": lambda s: s.details.checks,
    "fulltext": lambda s: s.details.fulltext,
    "refers-to-others": lambda s: s.details.refers_to,
    "others-refer-to-it": lambda s: s.details.referred_by,
    "others-cascade": lambda s: s.details.cascading,
    "table-mapped-again": lambda s: [row.name for row in s.others],
    "table-mapped-by-another-key": _by_another_key,
    "maps-the-configuration": lambda s: [s.mapping.source] if _is_configuration(s) else [],
    "maps-the-system": lambda s: [s.mapping.source] if (s.row.db_schema or "").lower() == "mysql" else [],
}
