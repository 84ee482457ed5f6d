"""What client libraries make of an endpoint: a table, each cell of which is a run of a short script of that language.

    features.toml   what every client is asked, and what must come
    clients.toml    the rows: a script, its protocol, straight or through a proxy
    kits.toml       what the scripts need: tools of the machine, pinned versions; `kits.py` installs it into a folder
    scripts/        one script a client, arguments HOST PORT PROTOCOL PREFIX; it prints a JSON line for itself and one
                    for each feature: what came, or why the client cannot
    result.json     what the last full run said; the table of docs/reference/client-libraries.md is made of it
    notes.toml      why a cell is otherwise

`play.py` runs a script and judges its lines, `world.py` makes the tables, `matrix.py` compares and makes the table. A
new client is a script and its row. The command line is `kvref interop`.
"""
