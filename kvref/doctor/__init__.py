"""What a configuration amounts to: each row of `containers` as the plugin's start-up sees it, in plain words.

`source.py` and `dump` open what is looked at, `examine.py` judges it with the store's own check, `features.py` finds
what a mapping depends on (`features.toml` ties that to requirements), `summary.py` shortens the report and `report.py`
shows it.
"""
