"""Runs on disk: written, judged, read.

A run is a folder:

run.json        who measured what, where, on which servers and with which verdict on them (`run.schema.json`)
points.parquet  a row for each measurement, valid or with every reason why not (`gates`)
hist.parquet    its latencies: counts by second, verb, outcome, clock and bin; a whole point is the sum
errors.jsonl    replies that were not allowed, verbatim; absent where there were none

Columns are in `tables`. The tables are written again with each point.
"""
