"""Facts: what is true of each endpoint, and how we know; the only room the judge may enter.

Data in TOML, strict to load: `facts.toml` is the vocabulary, `<profile>.toml` gives the values, `extends` names the
profile that values are inherited from.
"""

from __future__ import annotations

from kvref.profiles.schema import Fact, Profile, load, names, with_mappings

__all__ = ["Fact", "Profile", "load", "names", "with_mappings"]
