"""The endpoint under judgment: its address, its profile, its features and its tables."""
