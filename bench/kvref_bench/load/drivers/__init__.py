"""Generators of other projects, run to their end: memcaslap and sysbench, which pairs compare with."""
