"""Judge memcached clients: a scripted server, requirements of a client, and a verdict for each.

    requirements.toml   what a client must do: calls, the fault of the server's reply, permitted results
    store.py            items in memory and what commands do with them
    text.py, binary.py  commands of the text and meta protocols and of the binary protocol, and their replies in units
    faults.py           changes of a reply's units and of its transport
    login.py            authentication of both protocols
    tls.py              handshakes and records of TLS; with the files of `certificates`
    unread.py           bytes that an end of a connection has received and not read
    server.py           the sockets; it records what is received and sent
    adapter.py          the process of the client under test: one JSON array per call, one JSON object per result
    judge.py            verdicts, each failure with its conversation
    report.py           the recorded verdicts and their table

Nothing here imports the server of kvref: what judges a client is independent of what the client usually runs against.
The command line is `kvref conform-client`.
"""
