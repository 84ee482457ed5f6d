"""The reference model of the judge: what an endpoint may answer to commands and SQL, by the facts of its profile.

`model.py` takes the steps of `steps.py` one after another and returns what may be observed (`expected.py`). It uses
`effects.py` (what a command makes of one item), `words.py` (which mapping and key a word names), `schema.py` (which
cells keys and values become), `batches.py` (the transactions of connections) and `rows.py` (versions and locks).
`encodings.py` has commands and replies as bytes of text, of meta commands and of frames. It shares no code with a
server.
"""
