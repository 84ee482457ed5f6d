"""The benchmark: scenarios, a load generator, and runs on disk.

Reading path: `scenario` (experiments), `workload` (requests and their expected replies), `sql` (the same as prepared
statements), `peers` (the servers: tables, settings, counters), `load` (workers, sessions, histograms), `experiment`
(all points of a scenario), `runs` (folders, gates), `turns` and `pairs` (servers in turns, without a
scenario). `notebooks/support` has the figures of notebooks.

It starts servers through `kvref_testbed.targets` and measures `kvref.client` as one client among others; it imports no
code of the server that it measures.
"""
