"""Check a configuration: each row of `containers` as the plugin's start-up checks it, and what its mapping depends on.

`source.py` and `dump` open a database or a dump, `examine.py` judges it with the store's own check, `features.py` finds
the requirements that a mapping depends on (`features.toml`), and `report.py` summarizes and shows the report.
"""
