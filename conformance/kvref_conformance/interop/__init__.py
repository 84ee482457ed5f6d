"""Interoperability of client libraries: a table, each cell of which is a run of a short script in that language.

    features.toml   the requests of every client, and their expected results
    clients.toml    the rows: a script, its protocol, direct or through a proxy
    kits.toml       dependencies of the scripts: tools of the machine, pinned versions; `kits.py` installs them
    scripts/        one script for each client, arguments HOST PORT PROTOCOL PREFIX; it prints a JSON line for itself
                    and one for each feature: the result, or why the client lacks it
    result.json     results of the last full run; the table of docs/reference/client-libraries.md is generated from it
    notes.toml      reasons for unexpected cells

`play.py` runs a script and judges its lines, `world.py` makes the tables, `matrix.py` compares and makes the table. A
new client is a script and its row. The command line is `kvref interop`.
"""
