"""What a report says about the run itself."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kvref.specification import requirements
from kvref.specification.report import FORMAT
from kvref_conformance import __version__

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from kvref_conformance.endpoints.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of report.jsonl.

    Args:
        format: version of the report's format; a reader rejects one it does not know.
        suite: version of the suite.
        endpoint: HOST:PORT or unix:PATH.
        version: the endpoint's text after VERSION.
        profile: facts it was judged by.
        profile_reason: how the profile was chosen.
        sql: DSN of the database behind it, without a password; None without one.
        database: product and version behind it, such as `MySQL 8.0.33`; None without a DSN.
        level: what counted: one of `verdict.DEMANDS`.
        features: features of the endpoint by name, if they were detected or are in a profile file.
        catalogue: SHA-256 of the requirements.
        seed: of the generated cases.
        examples: number of generated conversations for each case.
        platform: where the suite ran.
        started: UTC.
    """

    format: int
    suite: str
    endpoint: str
    version: str
    profile: str
    profile_reason: str
    sql: str | None
    database: str | None
    level: str
    features: Mapping[str, bool]
    catalogue: str
    seed: int
    examples: int
    platform: str
    started: str

    @classmethod
    def of(cls, target: Endpoint, database: str | None, options: Namespace) -> Header:
        """Describe a run that begins now.

        Args:
            target: the endpoint.
            database: what is behind it; None without a view.
            options: of the run.
        """
        return cls(
            format=FORMAT,
            suite=__version__,
            endpoint=target.where,
            version=target.version,
            profile=target.profile.name,
            profile_reason=target.reason,
            sql=_without_password(options.sql),
            database=database,
            level=options.level,
            features=dict(target.features.there),
            catalogue=requirements.digest(),
            seed=options.seed,
            examples=options.examples,
            platform=f"{platform.platform()}, Python {platform.python_version()}",
            started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        )


def _without_password(dsn: str | None) -> str | None:
    password = urlsplit(dsn).password if dsn else None
    return dsn.replace(f":{password}@", ":***@") if dsn and password else dsn
