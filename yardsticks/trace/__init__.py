"""Calls, functions, files and file changes of one command, traced in the running server.

`server.py` runs `kvref serve` with a profile function in each of its threads, `measure.py` sends commands and reads
what was called for each, `commands.toml` lists set-ups and commands with their budgets. Figures are free of noise but
for timers of the server, so that the least of several repetitions counts.
"""
