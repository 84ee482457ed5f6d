"""A dump as a source of `kvref doctor`: a script of MySQL's, and the tables and rows that it leaves when it has run.

`script.py` reads the file and splits it into statements, `statements.py` parses them with sqlglot, `changes.py`
follows them with `define.py`; `tables.py` has a table and the types of its columns, `rows.py` the rows of the
configuration, and `source.py` shows both as a server would. What is not understood and can concern a mapped table
leaves a doubt, so that there is no verdict on it.
"""
