"""What generated conversations consist of: tables, rows, keys, values and words, drawn by hypothesis.

`palette.py` says what is drawn from: everything, where two servers are compared, or what the model knows. `tables.py`
draws tables and their mappings, `cells.py` the cells of rows, `words.py` keys, words and values, `commands.py` the
commands of the model in each protocol. `world.py` is what has been drawn, as SQL; `pools.py` has the texts and numbers,
`draw.py` the draws.
"""
