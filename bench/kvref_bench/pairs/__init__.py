"""kvref against its peers in interleaved pairs, servers and generator on processors of their own.

Reading path: `rows` (the measurements, as data), `servers` (those of one row, filled), `measure` (the pairs of a row,
by three generators), `document` (JSON, and the table in its page).
"""
