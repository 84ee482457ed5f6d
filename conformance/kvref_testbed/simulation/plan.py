"""The plan of a world: everything that a seed decides, as plain data.

A world draws nothing while it runs. A plan from which a command or a fault is taken out is a plan too, in which all
else is as it was; so a failing plan can be made smaller, and written to a file.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

KEYS: Final = ("k0", "k1")
_ALL: Final = (
    "set", "set", "set", "get", "get", "gets", "add", "replace", "append", "incr", "incr", "decr", "delete", "cas",
    "cas", "touch", "prepend", "prepend", "flush_all",
)  # fmt: skip
READS: Final = frozenset({"get", "gets"})
STORAGE: Final = frozenset({"set", "add", "replace", "append", "prepend", "cas"})
OTHER_PROTOCOLS: Final = (6, 9)  # last digits of seeds in whose worlds clients use other protocols than text
_CACHED: Final = ("get", "get", "get", "get", "gets", "set")  # mostly reads, of rows that are in the cache
_WRITES: Final = ("set", "set", "set", "append")  # batches of them end in deadlocks
# Of a database server: a session is killed, or does not answer a COMMIT or any statement, or a statement is refused.
FAILURES: Final = ("killed", "killed while writing", "answer lost", "hangs", "hangs for long", "deadlock", "error")
TIMEOUT: Final = 1  # seconds that a client waits for a database server, and for longer than a lock
_LARGE: Final = 1 << 10  # bytes on their way to a client that reads its replies at once
_LONG: Final = "v" * 900  # the column takes 1024 characters


@dataclass(frozen=True, slots=True)
class Path:
    """What the network does with one connection.

    Args:
        in_delay: seconds to the server.
        out_delay: seconds to the client.
        window: bytes on their way to the client, at most.
        high_water: bytes that the server's end buffers before it pauses the server.
        together: seconds in which bytes that arrive become one read of the server.
    """

    in_delay: float = 0.0001
    out_delay: float = 0.0001
    window: int = 1 << 20
    high_water: int = 1 << 16
    together: float = 0.0


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Args:
        verb: of the text protocol.
        key: its key; of a get, keys separated by blanks.
        value: data block of a storage verb.
        number: flags, or the amount of `incr` and `decr`.
        exptime: expiry time in seconds, as sent.
        noreply: the command has no reply.
        gap: seconds before it is sent.
        pipelined: it is sent without waiting for the replies to those before.
        cuts: see `Line.send`.
    """

    verb: str
    key: str = ""
    value: str = ""
    number: int = 0
    exptime: int = 0
    noreply: bool = False
    gap: float = 0.0
    pipelined: bool = False
    cuts: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """What one client does.

    Args:
        start: seconds until it connects.
        path: its network.
        commands: in order.
        end: after the last reply: `quit`, `close`, `half` (closes its sending side with the last command), `stay`.
        reset_after: it resets the connection so many seconds after it connected; None: it does not.
        protocol: `text`, `meta` or `binary`.
    """

    start: float
    path: Path
    commands: tuple[Command, ...]
    end: str = "stay"
    reset_after: float | None = None
    protocol: str = "text"


@dataclass(frozen=True, slots=True)
class Writer:
    """Another program that holds the file's write lock.

    Args:
        at: seconds until it takes the lock.
        seconds: for which it holds it.
        key: of the row that it writes; empty: it writes nothing.
        value: of that row.
    """

    at: float
    seconds: float
    key: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Crash:
    """When the machine crashes.

    Args:
        at: seconds until then; of a crash at a sync, after its begin or its end.
        steps: turns of the event loop later.
        sync: number of a sync; None: the time counts from the start.
        where: `begins` or `completes`.
        surviving: part of the unsynced writes that reaches the disk all the same, 0.0 to 1.0.
    """

    at: float
    steps: int = 0
    sync: int | None = None
    where: str = "begins"
    surviving: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """All that happens in a world.

    Args:
        seed: it was drawn from.
        store: `sqlite`, `memory` or `mysql`.
        settings: that differ from the defaults.
        cpu: see `Clock`.
        conversations: of the clients.
        syncs: of each sync in turn, seconds until it begins, and seconds that it takes.
        failed_syncs: numbers of those that fail.
        failed_commits: numbers of COMMIT statements that fail.
        writers: other programs.
        stop: seconds until the server stops, as at SIGTERM; None: when the clients are done.
        hurried: it waits for no client, as at a second SIGTERM.
        crash: None: only when the server has stopped.
        statements: of a database server, seconds that each statement takes in turn.
        failures: numbers of statements that fail, and how: one of FAILURES.
        connections: to a database server, at most.
        together: commands in one statement, at most.
    """

    seed: int
    store: str
    settings: dict[str, int]
    cpu: float
    conversations: tuple[Conversation, ...]
    syncs: tuple[tuple[float, float], ...] = ((0.0, 0.001),)
    failed_syncs: tuple[int, ...] = ()
    failed_commits: tuple[int, ...] = ()
    writers: tuple[Writer, ...] = ()
    stop: float | None = None
    hurried: bool = False
    crash: Crash | None = None
    statements: tuple[float, ...] = ()
    failures: tuple[tuple[int, str], ...] = ()
    connections: int = 0
    together: int = 0

    @property
    def batches(self) -> bool:
        """Return whether a transaction has more than one command."""
        return self.settings.get("daemon_memcached_w_batch_size", 1) > 1 or self.reads_batch

    @property
    def reads_batch(self) -> bool:
        """Return whether several reads share a transaction."""
        return self.settings.get("daemon_memcached_r_batch_size", 1) > 1

    @property
    def patience(self) -> int:
        """Return after how many seconds without an answer a database server counts as hanging."""
        return self.settings["innodb_lock_wait_timeout"] + TIMEOUT

    @property
    def slow(self) -> bool:
        """Return whether a client reads its replies slowly."""
        return any(each.path.window <= _LARGE for each in self.conversations)

    @property
    def may_refuse(self) -> bool:
        """Return whether a command may be answered with an error of the server."""
        return bool(self.failed_syncs or self.failed_commits or self.writers or self.batches or self.failures)

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(asdict(self), indent=1)


def from_json(text: str) -> Plan:
    """Return a plan from what `Plan.to_json` has written."""
    found: dict[str, Any] = json.loads(text)
    conversations = tuple(
        Conversation(
            **each
            | {
                "path": Path(**each["path"]),
                "commands": tuple(
                    Command(**one | {"cuts": tuple(tuple(cut) for cut in one["cuts"])}) for one in each["commands"]
                ),
            }
        )
        for each in found["conversations"]
    )
    return Plan(
        **found
        | {
            "conversations": conversations,
            "syncs": tuple(tuple(each) for each in found["syncs"]),
            "failed_syncs": tuple(found["failed_syncs"]),
            "failed_commits": tuple(found["failed_commits"]),
            "writers": tuple(Writer(**each) for each in found["writers"]),
            "statements": tuple(found["statements"]),
            "failures": tuple((number, failure) for number, failure in found["failures"]),
            "crash": None if found["crash"] is None else Crash(**found["crash"]),
        }
    )


class _Draw:
    """Draws the plan of one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._random = random.Random(seed)  # noqa: S311 - a test's
        self._verbs = self._random.choice((_ALL, _ALL, _CACHED, _WRITES))
        self._values = 0

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def seconds(self, *usual: float) -> float:
        """Return a time of the order of one of those given."""
        return round(self._random.choice(usual) * self._random.uniform(0.2, 1.8), 7)

    def plan(self) -> Plan:
        chosen = self._random
        store = self._store = chosen.choices(("memory", "mysql", "sqlite"), (6, 18, 76))[0]
        self._batches = store != "memory" and self.chance(0.35)
        settings = self._settings() if self._batches else {}
        if store == "mysql":
            settings |= {
                "innodb_api_trx_level": chosen.choice((0, 1, 1, 2)),
                "innodb_lock_wait_timeout": chosen.choice((1, 2, 5)),
            }
        if store == "sqlite" and self.chance(0.3):
            settings["row_cache_bytes"] = 0
        clients = chosen.choice((1, 2, 2, 3, 3, 4))
        longest = 14 if clients < 3 else 9
        much = 0.7 if self.chance(0.06) else 0.0
        plan = Plan(
            self.seed, store, settings, chosen.choice((0.0, 0.0, 0.0, 0.0007)),
            tuple(self._conversation(longest, much) for _ in range(clients)),
        )  # fmt: skip
        if store == "sqlite":
            plan = self._disk(plan)
        elif store == "mysql":
            plan = self._database(plan)
        if self.chance(0.3):
            plan = replace(plan, stop=self.seconds(0.001, 0.01, 0.1), hurried=self.chance(0.3))
        return self._in_protocols(plan) if self.seed % 10 in OTHER_PROTOCOLS else plan

    def _in_protocols(self, plan: Plan) -> Plan:
        """Let some clients use other protocols; in binary no reply says how many writes a deadlock takes back."""
        protocols = ("text", "meta") if plan.batches else ("text", "meta", "binary", "binary")
        return replace(
            plan, conversations=tuple(_in_protocol(each, self._random.choice(protocols)) for each in plan.conversations)
        )

    def _settings(self) -> dict[str, int]:
        chosen = self._random
        return {
            "daemon_memcached_w_batch_size": chosen.choice((5, 64) if self._verbs is _WRITES else (2, 2, 3, 5, 64)),
            "daemon_memcached_r_batch_size": chosen.choice((1, 1, 1, 2, 5)),
            "innodb_api_bk_commit_interval": chosen.choice((1, 1, 2)),
            "innodb_api_trx_level": chosen.choice((0, 0, 0, 1, 2, 3)),
            "innodb_lock_wait_timeout": chosen.choice((1, 2, 5)),
        }

    def _disk(self, plan: Plan) -> Plan:
        chosen = self._random
        syncs = tuple(
            (self.seconds(0.00001, 0.0005), self.seconds(0.0001, 0.003, 0.03, 0.4)) for _ in range(chosen.randint(1, 6))
        )
        failed_syncs = (chosen.randint(0, 4),) if self.chance(0.12) else ()
        failed_commits = tuple({chosen.randint(0, 6) for _ in range(chosen.randint(1, 2))}) if self.chance(0.12) else ()
        crash = self._crash(syncs, failed_syncs) if self.chance(0.5) else None
        writes = crash is None and not plan.batches  # what SQL writes is not synced, and waits for no batch
        often = writes and self._verbs is _CACHED
        writers: tuple[Writer, ...] = ()
        if self.chance(0.7 if often else 0.25):
            writers = tuple(self._writer(writes=writes) for _ in range(chosen.randint(1, 5 if often else 2)))
        return replace(
            plan, syncs=syncs, failed_syncs=failed_syncs, failed_commits=failed_commits, writers=writers, crash=crash
        )

    def _database(self, plan: Plan) -> Plan:
        chosen = self._random
        failures = {chosen.randint(5, 60): chosen.choice(FAILURES) for _ in range(chosen.choice((0, 0, 1, 1, 2, 5)))}
        crash = Crash(self.seconds(0.005, 0.05, 1.0), chosen.randint(0, 4)) if self.chance(0.2) else None
        writers = (self._writer(writes=True),) if not self._batches and self.chance(0.4) else ()
        return replace(
            plan,
            writers=writers,
            statements=tuple(self.seconds(0.0002, 0.002, 0.02) for _ in range(chosen.randint(1, 6))),
            failures=tuple(sorted(failures.items())),
            connections=chosen.choice((3, 4, 6, 16)),
            together=chosen.choice((0, 2, 128)),
            crash=crash,
        )

    def _crash(self, syncs: tuple[tuple[float, float], ...], failed_syncs: tuple[int, ...]) -> Crash:
        chosen = self._random
        steps, surviving = chosen.randint(0, 4), chosen.choice((0.0, 0.0, 0.5, 1.0))
        if self.chance(0.25):
            return Crash(self.seconds(0.0005, 0.005, 0.05, 1.0), steps, surviving=surviving)
        where, number = chosen.choice(("begins", "completes")), chosen.randint(0, 6)
        if failed_syncs and self.chance(0.6):
            where, number = "completes", failed_syncs[0]
        latest = syncs[number % len(syncs)][1] if where == "begins" else chosen.choice((0.0, 0.001, 0.01))
        return Crash(round(latest * chosen.random(), 7), steps, number, where, surviving)

    def _writer(self, *, writes: bool) -> Writer:
        key = self._random.choice(("", *KEYS)) if writes else ""
        return Writer(
            self.seconds(0.0005, 0.01), self.seconds(0.0, 0.0, 0.002, 0.02, 0.3), key, self._value() if key else ""
        )

    def _conversation(self, longest: int, much: float) -> Conversation:
        chosen = self._random
        path = Path(
            self.seconds(0.00005, 0.001), self.seconds(0.00005, 0.001),
            chosen.choice((1 << 20, 1 << 20, 200, 7)), chosen.choice((1 << 16, 1 << 16, 100, 10)),
            chosen.choice((0.0, 0.0, 0.00001, 0.002)),
        )  # fmt: skip
        pipelines = chosen.choice((0.0, 0.3, 0.9))
        pauses = (0.0001, 0.001) if not self._batches else (0.0001, 0.001, 0.001, 4.0)
        commands = [self._command(pipelines, pauses) for _ in range(chosen.randint(1, longest))]
        if self.chance(much):
            many = chosen.choice((20, 40))
            commands += [
                Command("set", chosen.choice(KEYS), _LONG + self._value(), pipelined=True) for _ in range(many)
            ]
        end = chosen.choice(("stay", "stay", "quit", "close", "half"))
        reset = self.seconds(0.001, 0.01, 0.1) if self.chance(0.12) else None
        return Conversation(self.seconds(0.00001, 0.001), path, tuple(commands), end, reset)

    def _value(self) -> str:
        self._values += 1
        return str(100 * self._values)

    def _command(self, pipelines: float, pauses: tuple[float, ...]) -> Command:
        chosen = self._random
        verb = chosen.choice(self._verbs)
        key = chosen.choice(KEYS if self._verbs is _WRITES else (KEYS[0], *KEYS))
        if verb in READS and self.chance(0.2):
            key = " ".join(KEYS)
        number = chosen.randint(1, 9) if verb in {"incr", "decr"} else chosen.randint(0, 3)
        # What waits for a lock may be lost, which a command without a reply would not say.
        noreply = self.chance(0.12) and verb not in READS | {"cas"} and not (self._batches or self._store == "mysql")
        cuts = tuple(
            (self._random.random(), self.seconds(0.00001, 0.002)) for _ in range(chosen.choice((0, 0, 0, 1, 2)))
        )
        return Command(
            verb, "" if verb == "flush_all" else key, self._value(), number,
            chosen.choice((0, 0, 0, 0, 2)) if verb in {"set", "add", "replace", "cas", "touch"} else 0,
            noreply, self.seconds(*pauses) if self.chance(0.5) else 0.0, self.chance(pipelines),
            tuple(sorted(cuts)),
        )  # fmt: skip


def _in_protocol(conversation: Conversation, protocol: str) -> Conversation:
    """Return a conversation in a protocol, in which each get is of one key, and has a reply."""
    if protocol == "text":
        return conversation
    commands = tuple(replace(each, key=each.key[: len(KEYS[0])], noreply=False) for each in conversation.commands)
    return replace(conversation, protocol=protocol, commands=commands)


def draw(seed: int) -> Plan:
    """Return the plan of a seed."""
    return _Draw(seed).plan()
