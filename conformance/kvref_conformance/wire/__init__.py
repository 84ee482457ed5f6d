"""Bytes and texts of memcached's protocols: connections, frames in words, templates of replies, verbs and requests."""
