"""Servers that are measured in turns, each on its own processors.

Reading path: `report` (points, documents, tables), `cpus` (assignment of processors), `loaded` (one measurement of the
generator), then what is measured: `growth`, `staleness`, `idle`. `pairs` compares kvref with its peers.
"""
