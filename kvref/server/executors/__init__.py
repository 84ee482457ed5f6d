"""Executors: they carry out the commands of all connections against one store; `base.py` says what they offer.

Read `execution.py` first, the one interpreter of verbs; then `sqlite/executor.py` or `mysql/executor.py`.
"""
