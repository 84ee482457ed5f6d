"""Errors kvref raises on purpose; anything else that escapes is a bug in kvref.

KvrefError                 every error below: its text names the value and the fix
├── ConfigError            a setting, a profile or a containers row that cannot be used
├── StoreError             the database refused or failed; the text is the database's cause
└── TargetError            a real endpoint could not be fetched, started, reached or stopped
"""

from __future__ import annotations


class KvrefError(Exception):
    """Base of every error that names a value and a fix."""


class ConfigError(KvrefError):
    """A setting, a profile or a configuration row cannot be used."""


class StoreError(KvrefError):
    """The database refused or failed."""


class TargetError(KvrefError):
    """A real endpoint could not be fetched, started, reached or stopped."""
