"""Traffic of real clients: recorded by a proxy, with keys and values masked if that is needed, and replayed elsewhere.

Reading path: `dialogue.py` (which reply belongs to which command), `proxy.py` and `recorder.py` (recording), `mask.py`,
`replay.py` (replay and comparison), `grouping.py` (requirements of a difference), `show.py` (results).
"""
