"""Servers that are measured in turns, each on processors of its own.

Reading path: `report` (points, documents, tables), `cpus` (assignment of processors), `loaded` (one measurement of the
generator), then what is measured: `growth`, `staleness`, `idle`. `pairs` compares kvref with its peers.
"""
