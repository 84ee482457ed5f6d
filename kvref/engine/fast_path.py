"""When a plain command, of an ordinary word, is nothing but a look at one row, or one row written."""

from __future__ import annotations

from kvref.engine.cache.policies import Policy
from kvref.engine.mapping import Mapping
from kvref.engine.session import Session


def ordinary_mapping(session: Session) -> Mapping | None:
    """Return the mapping on which the plain commands of a session are just that, None where there is none."""
    policies = session.shared.directory.policies
    if policies.get is not Policy.TABLE or policies.set is not Policy.TABLE:
        return None
    mapping = session.plain_mapping
    if mapping is None or mapping.fault or mapping.blind or mapping.beginning:
        return None
    return mapping
