"""What every Python client is asked: the calls of each feature, and what came back as JSON lines.

What should come is not a matter of a script: `../../features.toml` has it.
"""

from __future__ import annotations

import inspect
import json
import platform
import ssl
import sys
import time
from importlib.metadata import version

LONG = "kvref " * 700


class CannotError(Exception):
    """The client has no call for it."""


class Calls:
    """The calls of a client under the names the contract has for them, as keyword arguments.

    A miss is None, a refusal False, texts come back as texts. `raw_get` gives a value as the client itself does.
    """

    def __init__(self, **calls):
        self.number, self.long, self.structure = 42, LONG, {"a": [1, 2.5, "ü"], "b": None}
        self.__dict__.update(calls)

    def __getattr__(self, name):
        raise CannotError(f"no call {name}")


# Calls that the clients made after pymemcache have under the contract's names.
ALIKE = ("get", "delete", "add", "replace", "append", "prepend", "gets", "cas", "incr", "decr", "touch")


def alike(client):
    """Give the calls of a client that has those of ALIKE."""
    return {name: getattr(client, name) for name in ALIKE}


def text(value):
    """Give bytes as text; bytes that are not UTF-8 as their numbers."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def get(c, key):
    yield c.set(key, "one")
    yield c.get(key)
    yield c.get(key + "-none")
    yield c.delete(key)
    yield c.get(key)


def values(c, key):
    for value in (c.number, c.long, c.structure):
        c.set(key, value)
        yield c.raw_get(key) == value


def multi(c, key):
    c.set(key + "1", "one")
    c.set(key + "2", "two")
    found = c.get_multi([key + "1", key + "2", key + "-none"])
    yield from (found.get(each) for each in (key + "1", key + "2", key + "-none"))


def store(c, key):
    yield c.add(key, "one")
    yield c.add(key, "two")
    yield c.replace(key, "two")
    yield c.replace(key + "-none", "two")
    yield c.get(key)


def append(c, key):
    c.set(key, "two")
    yield c.append(key, ">")
    yield c.prepend(key, "<")
    yield c.get(key)


def cas(c, key):
    c.set(key, "one")
    value, number = c.gets(key)
    yield value
    yield c.cas(key, "two", number)
    yield c.cas(key, "three", number)
    yield c.get(key)


def incr(c, key):
    c.set_number(key, 5)
    yield c.incr(key, 3)
    yield c.decr(key, 2)
    yield c.decr(key, 10)


def initial(c, key):
    yield c.incr_from(key, 3, 5)
    yield c.incr_from(key, 3, 5)


def at(c, key):
    yield c.set(f"@@bbb.{key}", "other")
    yield c.get(f"@@bbc.{key}")
    yield c.get(f"@@aaa.{key}")


def multi_at(c, key):
    get_multi = c.get_multi
    c.set(f"@@bbb.{key}1", "one")
    c.set(f"@@aaa.{key}2", "two")
    found = get_multi([f"@@bbc.{key}1", f"@@aaa.{key}2"])
    yield from (found.get(each) for each in (f"@@bbc.{key}1", f"@@aaa.{key}2"))


def bind(c, key):
    raw = c.raw
    c.set(f"@@bbb.{key}", "other")
    c.get(f"@@aaa.{key}")
    yield raw("bind bbc")
    yield c.get(key)
    yield raw("bind aaa")
    yield c.get(key)


def expiry(c, key):
    c.set(key, "one", 2)
    yield c.get(key)
    yield ...
    yield c.get(key)


def touch(c, key):
    c.set(key, "one", 2)
    yield c.touch(key, 100)
    yield c.touch(key + "-none", 100)
    yield ...
    yield c.get(key)


def gat(c, key):
    c.set(key, "one", 2)
    yield c.gat(key, 100)
    yield c.gat(key + "-none", 100)
    yield ...
    yield c.get(key)


AT_ONCE = (get, values, multi, store, append, cas, incr, initial)
WITH_A_WAIT = (expiry, touch, gat)
# Last, because they leave the connection in another container.
SWITCHING = (at, multi_at, bind)


def advance(steps, came, line):
    """Take what comes up to the wait or the end."""
    if "cannot" in line or (came and str(came[-1]).startswith("error: ")):
        return
    try:
        for each in steps:
            if each is ...:
                return
            came.append(each)
    except CannotError as call:
        line["cannot"] = str(call)
    except Exception as error:  # whatever the client raises is what came
        came.append(f"error: {type(error).__name__}: {error}"[:200])


def raised(error):
    """Give what a client raises, at most 200 characters."""
    return f"{type(error).__name__}: {error}"[:200]


def result(c, name, arguments):
    """Make one call for `kvref conform-client` and return what is printed of it."""
    try:
        returned = getattr(c, name)(*arguments)
    except CannotError as call:
        return {"cannot": str(call)}
    except Exception as error:  # whatever the client raises
        return {"raised": raised(error)}
    if isinstance(returned, dict):
        returned = {text(key): text(value) for key, value in returned.items()}
    return {"returned": list(map(text, returned)) if isinstance(returned, tuple) else text(returned)}


def trusting(ca):
    """Return a TLS context that trusts the authority in a file; None without a file."""
    return None if ca is None else ssl.create_default_context(cafile=ca)


def serve(connect, protocol, timeout):
    """Make the calls that standard input lists, a JSON array a line, each with a line of its result.

    A script whose `connect` has the parameter `ca` or `credentials` can do TLS, or authenticate by user and password.
    """
    c = Calls()
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        if name == "connect":
            host, port, options = [*arguments, {}][:3]
            lack = sorted(options.keys() - inspect.signature(connect).parameters)
            try:
                c = Calls() if lack else connect(host, port, protocol, timeout, **options)
                done = {"cannot": f"no option {lack[0]}"} if lack else {"returned": True}
            except CannotError as option:
                c, done = Calls(), {"cannot": str(option)}
            except Exception as error:  # whatever the client raises
                c, done = Calls(), {"raised": raised(error)}
        else:
            done = result(c, name, arguments)
        print(json.dumps(done, default=repr), flush=True)


def main(package, connect):
    """Run the contract: arguments HOST PORT PROTOCOL PREFIX, or --calls PROTOCOL TIMEOUT."""
    runtime = f"Python {platform.python_version()}"
    print(json.dumps({"client": package, "version": version(package), "runtime": runtime}), flush=True)
    if sys.argv[1] == "--calls":
        serve(connect, sys.argv[2], float(sys.argv[3]))
        return
    host, port, protocol, prefix = sys.argv[1:5]

    def begin(features):
        begun = []
        for feature in features:
            line = {"feature": feature.__name__, "came": []}
            # A client of its own: one that met an error may take the server for dead for a while.
            client = connect(host, int(port), protocol, 5)
            begun.append((feature(client, f"{prefix}-{feature.__name__}"), line["came"], line))
            advance(*begun[-1])
        return begun

    def tell(begun):
        for _, _, line in begun:
            print(json.dumps(line, default=repr), flush=True)

    tell(begin(AT_ONCE))
    waiting = begin(WITH_A_WAIT)
    time.sleep(3.2)  # what expires has by then
    for each in waiting:
        advance(*each)
    tell(waiting)
    tell(begin(SWITCHING))
