"""Bytes to typed commands, typed replies to bytes. No sockets, no meaning: keys stay opaque words here.

Read `commands.py`, `replies.py`, then `text.py` (the codec) and `rules.py` (what differs by profile).
"""
