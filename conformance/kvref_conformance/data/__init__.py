"""Decoded JSON and TOML checked against types, and generated parts of pages."""
