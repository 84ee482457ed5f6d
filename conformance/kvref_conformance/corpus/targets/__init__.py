"""Replay targets: servers that a conversation of the corpus runs on, each set up again for it."""
