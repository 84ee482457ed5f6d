"""The specification as data, for all who read it: requirements, and where endpoints are known to break them.

`requirements` has the catalogue, `deviations` the known deviations and defects by profile. `deviation_cases.toml` says
which requirements the cases judge that a deviation names; `python -m kvref_conformance.spec.deviation_cases` writes it.
"""
