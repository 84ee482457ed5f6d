"""A conversation: set-up, steps, and the replies of each version; one JSON object a line of a transcript.

The format is described in README.md in this folder and published as `schema.json`. A script is a conversation whose
steps have no `got` yet.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kvref.errors import SuiteError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_conformance.corpus.holes import Json

Got: TypeAlias = "Mapping[str, Json]"


@dataclass(frozen=True, slots=True)
class MemcachedStep:
    """Bytes on a memcached connection, and the answer.

    Args:
        mc: name of the connection, opened at its first use.
        send: text as latin-1 characters, or a list of texts and `{"cas": n}`: the n-th cas number answered so far.
        hex: the same in hexadecimal digits, for the binary protocol; the answer is then hexadecimal too.
        quiet: no answer is expected, or none yet.
        first: seconds to wait for the first byte; None for the player's own.
        close: close the connection after sending.
        half: close the sending side only.
        abort: close with a reset.
        at: in recorded traffic, seconds after the beginning of the recording at which it was sent.
        took: in recorded traffic, seconds until the answer was complete.
        got: by version, the answer.
    """

    mc: str
    send: Json = None
    hex: Json = None
    quiet: bool = False
    first: float | None = None
    close: bool = False
    half: bool = False
    abort: bool = False
    at: float | None = None
    took: float | None = None
    got: Got = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SqlStep:
    """A statement on a SQL connection that commits by itself.

    Args:
        sql: name of the connection, opened at its first use.
        exec: the statement.
        asynchronous: start it only.
        join: wait for the result of the one that was started.
        poll: `until` these rows come, `every` so many seconds, for `timeout` seconds at most.
        watch: `for` so many seconds, `every` so many: one entry for each change of the rows.
        cols: numbers of the columns to keep, from 0.
        mask: expression whose groups become `#` in the cells.
        got: by version, `{"rows": …}`, `{"affected": n}`, `{"error": [number, text]}` or `{"seen": …}`.
    """

    sql: str
    exec: str | None = None
    asynchronous: bool = False
    join: bool = False
    poll: Mapping[str, Any] | None = None
    watch: Mapping[str, float] | None = None
    cols: tuple[int, ...] | None = None
    mask: str | None = None
    got: Got = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait, in seconds."""

    sleep: float


@dataclass(frozen=True, slots=True)
class Server:
    """Do something to the server.

    Args:
        server: `reload` the plugin, `restart` the server, `kill9`: kill and start it.
        got: by version, whether the memcached port is `open` or `closed` afterwards.
    """

    server: str
    got: Got = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CrowdStep:
    """The same on many memcached connections: all send, then all read.

    Args:
        many: number of connections.
        name: beginning of their names; a number from 0 follows.
        send: text; `{i}` is replaced by the number.
        first: seconds to wait for the first byte.
        close: close them.
        got: by version, the count of each reply.
    """

    many: int
    name: str
    send: str | None = None
    first: float | None = None
    close: bool = False
    got: Got = field(default_factory=dict)


Step: TypeAlias = MemcachedStep | SqlStep | Sleep | Server | CrowdStep

# The key that identifies the kind of a step.
KINDS: Final[Mapping[str, type[Step]]] = {
    "mc": MemcachedStep,
    "sql": SqlStep,
    "sleep": Sleep,
    "server": Server,
    "many": CrowdStep,
}


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation with a server that was set up for it.

    Args:
        id: unique in its set.
        group: conversations on the same subject.
        title: what it shows.
        options: options of mysqld; `{mc_port}` is replaced by the memcached port.
        sql: statements after the plugin's own `innodb_memcached_config.sql` and before the plugin is installed.
        steps: in order.
        port: by version, `closed` if the port did not open with this set-up, `server died` if mysqld ended.
        crash: by version, mysqld's exit status (negative: signal) if it ended during the conversation.
        traffic: of a part of recorded traffic, `began`: UTC, `part`: its number from 1, `masked`: whether keys and
            values are masked. Its steps continue the connections and the cas numbers of the part before it.
    """

    id: str
    group: str
    title: str
    steps: tuple[Step, ...]
    options: tuple[str, ...] = ()
    sql: tuple[str, ...] = ()
    port: Mapping[str, str] = field(default_factory=dict)
    crash: Mapping[str, int] = field(default_factory=dict)
    traffic: Mapping[str, Any] = field(default_factory=dict)

    @property
    def set_up(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return what must be equal for two conversations to start from the same world."""
        return self.options, self.sql

    def versions(self) -> frozenset[str]:
        """Return the versions it was recorded with."""
        recorded = {version for step in self.steps if not isinstance(step, Sleep) for version in step.got}
        return frozenset(recorded | self.port.keys() | self.crash.keys())


# The order of keys in a line: what a reader needs first comes first.
ORDER: Final = ("id", "group", "title", "options", "sql", "port", "crash", "traffic", "steps")


def from_json(line: Mapping[str, Any]) -> Conversation:
    """Build a conversation from a decoded line.

    Raises:
        SuiteError: a field is missing or unknown; the text names the conversation.
    """
    if not isinstance(line, dict):
        raise SuiteError("a conversation is a JSON object")
    where = str(line.get("id", "a conversation without id"))[:100]
    if not isinstance(line.get("id", ""), str):
        raise SuiteError(f"{where}: an id is a text")
    if not isinstance(line.get("steps", []), list):
        raise SuiteError(f"{where}: steps is no list")
    steps = tuple(_step(row, f"{where}, step {number}") for number, row in enumerate(line.get("steps", ()), 1))
    conversation: Conversation = _build(Conversation, {**line, "steps": steps}, where)
    return conversation


def to_json(conversation: Conversation) -> dict[str, Any]:
    """Return the line of a conversation; what has its default value is left out."""
    row = _as_json(conversation)
    row["steps"] = [_as_json(step) for step in conversation.steps]
    return {key: row[key] for key in ORDER if key in row}


def _step(row: object, where: str) -> Step:
    if not isinstance(row, dict):
        raise SuiteError(f"{where}: {repr(row)[:60]} is no JSON object")
    kind = next((KINDS[key] for key in row if key in KINDS), None)
    if kind is None:
        raise SuiteError(f"{where}: a step has one of the keys {', '.join(KINDS)}, this one has {', '.join(row)}")
    renamed = {"asynchronous" if key == "async" else str(key): value for key, value in row.items()}
    step: Step = _build(kind, renamed, where)
    return step


def _build(kind: type[Any], row: Mapping[str, Any], where: str) -> Any:
    known = {each.name: each for each in fields(kind)}
    required = {name for name, each in known.items() if each.default is MISSING and each.default_factory is MISSING}
    if unknown := row.keys() - known.keys():
        raise SuiteError(f"{where}: unknown field {', '.join(sorted(unknown))}; known are {', '.join(known)}")
    if missing := required - row.keys():
        raise SuiteError(f"{where}: field {', '.join(sorted(missing))} is missing")
    # JSON has no tuples; the lists of `got` and `send` stay JSON.
    tuples = {name for name, each in known.items() if str(each.type).startswith("tuple")}
    if wrong := [key for key in tuples & row.keys() if not isinstance(row[key], list | tuple | None)]:
        raise SuiteError(f"{where}: {min(wrong)} is no list")
    return kind(**{key: tuple(value) if key in tuples and value is not None else value for key, value in row.items()})


def _as_json(thing: Conversation | Step) -> dict[str, Any]:
    row = {}
    for each in fields(thing):
        value = getattr(thing, each.name)
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        if value != default:
            name = {"asynchronous": "async"}.get(each.name, each.name)
            row[name] = list(value) if isinstance(value, tuple) else value
    return row
