"""Several reports side by side: requirements by endpoints, for people, pull requests and machines.

`column.py` reads a report, `grid.py` combines them; every other module writes one format of the grid.
"""
