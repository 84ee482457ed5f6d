"""Client libraries as load: the same gets through each of them.

Reading path: `../clients.py` names them; `meter.py` counts what one thread or loop did; `blocking.py` (a thread for
each session), `coroutines.py` (asyncio), `programs.py` with `scripts` (a process for each session).
"""
