"""kvref against its peers in interleaved pairs, servers and generator on processors of their own.

Reading path: `rows` (what is measured, as data), `cpus` (who runs where), `servers` (those of one row, filled),
`clients` (the three generators), `measure` (the pairs of a row), `document` (JSON, the table and where it stands).
The command is `bench/pairs.py`.
"""
