"""The cache policies and the memory cache. Start reading at `dispatch.py`."""
