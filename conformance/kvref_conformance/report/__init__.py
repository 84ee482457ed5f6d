"""What a run leaves: lines for machines (`jsonl.py`), a page for people (`html.py`), progress for the terminal."""
