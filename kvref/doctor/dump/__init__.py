"""A dump as a source of `kvref doctor`: a script of MySQL's, and the tables and rows that it leaves when it has run.

`text.py` reads the file, `script.py` splits it into statements, `changes.py` follows them with `alter.py`, `define.py`,
`declared.py` and `session.py`; `tables.py` is a table, `rows.py` has the rows of the configuration, and `source.py`
shows both as a server would. Statements are split into words (`words.py`) and parsed by sqlglot. What is not understood
and can concern a mapped table leaves a doubt, so that there is no verdict on it.
"""
