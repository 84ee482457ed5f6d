"""How long requests of an open loop wait for a session when nothing is wrong: no fault of the generator."""

from __future__ import annotations

import math


def wait(rate: float, sessions: float, mean: float, variation: float, share: float = 0.99) -> float:
    """Give the wait for a session, s, that `share` of the requests do not exceed; infinite where sessions are too few.

    Erlang's delay formula for Poisson arrivals, with the correction of Allen and Cunneen (Probability, Statistics and
    Queueing Theory, 1978) for service times that are not exponential.

    Args:
        rate: of requests, 1/s. sessions: that serve them.
        mean: service time, s. variation: its variance by the square of its mean.
        share: 0 to 1.
    """
    busy = rate * mean
    if busy >= sessions:
        return math.inf
    blocked = 1.0  # Erlang B, by its recursion over the sessions
    for number in range(1, math.ceil(sessions) + 1):
        blocked = busy * blocked / (number + busy * blocked)
    waiting = blocked / (1 - busy / sessions * (1 - blocked))
    if waiting <= 1 - share:
        return 0.0
    return math.log(waiting / (1 - share)) * mean / (sessions - busy) * (1 + variation) / 2
