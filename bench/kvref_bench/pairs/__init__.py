"""kvref against its peers in interleaved pairs, servers and generator on processors of their own.

Reading path: `rows` (the measurements, as data), `cpus` (assignment of processors), `servers` (those of one row,
filled), `clients` (the three generators), `measure` (the pairs of a row), `document` (JSON, and the table in its page).
"""
