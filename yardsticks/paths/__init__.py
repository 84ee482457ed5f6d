"""The server against itself: the same conversations planned, and by steps alone, must not differ.

`worlds.py` runs conversations of `kvref duel` in generated worlds, over sockets; `inside.py` runs conversations of one
to three connections in this process, with split input, and compares replies, rows and counters; `cost.py` compares CPU.
"""
