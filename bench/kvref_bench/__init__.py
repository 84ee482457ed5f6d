"""The load generator's package: its scenarios are described in README.md, none is implemented yet.

It may lean on `kvref.wire`, `kvref.client` and `kvref.profiles`, never on the server it measures.
"""
