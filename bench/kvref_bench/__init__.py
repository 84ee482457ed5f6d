"""The benchmark: scenarios, a load generator, runs on disk, and what notebooks make of them.

Reading path: `scenario` (what is asked), `workload` (requests and the replies they must get), `sql` (the same as
prepared statements), `peers` (the servers: tables, settings, counters), `load` (workers, sessions, histograms),
`experiment` (all points of a scenario), `runs` (folders, gates, comparison, export), `analysis` (what notebooks draw).

It starts servers through `kvref_testbed.targets` and measures `kvref.client` as one client among others; it imports no
code of the server that it measures.
"""
