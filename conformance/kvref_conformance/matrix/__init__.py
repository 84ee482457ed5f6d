"""Several reports beside each other: requirements by endpoints, for people, pull requests and machines.

`column.py` reads a report, `grid.py` puts them beside each other; every other module writes one form of the grid.
"""
