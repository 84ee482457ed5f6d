"""Collects what a run sends: counts of cells and of configurations, never the requests themselves."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from kvref_conformance.coverage.configuration import row
from kvref_conformance.coverage.connection_state import BOUND, FAILED, NO_MAPPINGS, SWITCHED, Connection, Limits
from kvref_conformance.coverage.key_shapes import Naming
from kvref_conformance.coverage.literal import sent_in
from kvref_conformance.wire.requests import Reader
from kvref_conformance.wire.verbs import BINARY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvref.profiles import Profile
    from kvref_conformance.case import Case, Setup, Shape
    from kvref_conformance.coverage.configuration import Level
    from kvref_conformance.judging.conversation import Exchange
    from kvref_conformance.wire.requests import Request

# What the suite calls its mappings; `m` is that of a case's own table.
MAPPINGS: Final = ("m", "m1", "m1b", "m2", "q")
# Verbs that read a word everywhere; the others do where every verb does.
SWITCHING: Final = frozenset("get gets bget set add replace append prepend cas".split())
UNDONE: Final = ("NOT_", "EXISTS", "ERROR", "CLIENT_ERROR", "SERVER_ERROR", "NF", "NS", "EX ", "EN")


class Exercised:
    """What a run exercised, as counts.

    Args:
        profile: facts that the endpoint is judged by.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.cells: Counter[tuple[str, str]] = Counter()
        self.states: Counter[tuple[str, str, str]] = Counter()
        self.rows: Counter[tuple[Level, ...]] = Counter()
        self.requests = 0
        self.naming = Naming(
            profile.flag("mapping.supported"),
            profile.flag("range.supported"),
            profile["mapping.delimiter"] == "set-of-bytes",
        )
        self._limits = Limits()
        self._connections: dict[str, Connection] = {}

    def add(self, other: Exercised) -> None:
        """Add the counts of another run against an equal endpoint."""
        self.cells += other.cells
        self.states += other.states
        self.rows += other.rows
        self.requests += other.requests

    def take(self, case: Case, exchanges: Sequence[Exchange], names: Mapping[str, str]) -> None:
        """Count a literal case.

        Args:
            case: has the steps and the configuration.
            exchanges: those of its conversation; none if it was not run.
            names: values of its names.
        """
        if not exchanges:
            return
        self.begin(names, case.setup, case.shape, case.settings)
        for sent in sent_in(case.steps, exchanges):
            if sent.data:
                self.record(sent.on, sent.data, sent.got, binary=sent.binary, more=sent.more)
            else:
                self.end(sent.on)

    def begin(
        self,
        names: Mapping[str, str],
        setup: Setup | None = None,
        shape: Shape | None = None,
        settings: Mapping[str, int] | None = None,
    ) -> None:
        """Begin a case, or an example of a generated one, on new connections.

        Args:
            names: of the mappings, by what the suite calls them.
            setup: the configuration; None for the usual one.
            shape: the table of its own; None where it has none.
            settings: with which the endpoint runs; None for those it had before the run.
        """
        self._connections.clear()
        self._limits = Limits.of(settings)
        self.naming.delimiter = (setup.delimiter if setup is not None else None) or "."
        self.naming.names = {names[name] for name in MAPPINGS if name in names}
        if setup is not None and setup.containers is not None:
            self.naming.names = {name for name, table in setup.containers if table is not None}
        self.configured(setup, shape, settings)

    def configured(self, setup: Setup | None, shape: Shape | None, settings: Mapping[str, int] | None = None) -> None:
        """Count a configuration other than that of `begin`."""
        levels = row(setup, shape, settings, self.profile) if self.naming.supported else None
        if levels is not None:
            self.rows[levels] += 1

    def record(self, on: str, data: bytes, got: str | None = None, *, binary: bool = False, more: bool = False) -> None:
        """Count what is sent on a connection, which the first bytes open.

        Args:
            on: its name.
            data: the bytes.
            got: the answer; None where it is not known yet.
            binary: they are frames.
            more: the last request may go on in the next bytes.
        """
        if on not in self._connections:
            meta = self.profile.flag("verbs.beyond_plugin")
            self._connections[on] = Connection(Reader(binary=binary, meta=meta))
        connection = self._connections[on]
        found = connection.reader.read(data, more=more)
        for request in found:
            # The parts of a reply to several requests cannot be assigned to them.
            self._count(connection, request, got if len(found) == 1 and not more else None)

    def end(self, on: str) -> None:
        """Forget a connection that has ended; every one for no name."""
        if on:
            self._connections.pop(on, None)
        else:
            self._connections.clear()

    def _count(self, connection: Connection, request: Request, got: str | None) -> None:
        self._learn(request, got)
        self.requests += 1
        for shape in self.naming.shapes(request):
            self.cells[request.verb.name, shape] += 1
        if request.verb.stateful:
            mapping = connection.mapping if self.naming.supported else NO_MAPPINGS
            self.states[request.verb.name, mapping, connection.batch()] += 1
        if self.naming.supported:
            self._follow(connection, request, got)

    def _learn(self, request: Request, got: str | None) -> None:
        """See by the answer whether a mapping is there: a row of `containers` may be broken, or new."""
        keys = request.key_texts
        if got is None or not keys:
            return
        if request.verb.name == "bind":
            self._know(keys[0], known=got == "SUCCEED\r\n")
        word = self.naming.split(keys[0])
        if word is not None and request.verb.batch == "read" and (word[1] is None or got.startswith("VALUE ")):
            self._know(word[0], known=_done(request, got))

    def _know(self, name: str, *, known: bool) -> None:
        if known:
            self.naming.names.add(name)
        else:
            self.naming.names.discard(name)

    def _follow(self, connection: Connection, request: Request, got: str | None) -> None:
        name, keys = request.verb.name, request.key_texts
        if name == "bind" and keys:
            if keys[0] in self.naming.names:
                connection.choose(keys[0], BOUND)
            else:
                connection.mapping = FAILED
            return
        if name.removeprefix(BINARY).startswith("flush"):
            every = self.profile["flush.other_batches"] == "committed"
            for each in self._connections.values() if every else (connection,):
                each.commit()
        words = [word for word in map(self.naming.split, keys) if word is not None]
        if name in SWITCHING or name.startswith(BINARY) or self.profile["mapping.switching_verbs"] == "all":
            for mapping in (word[0] for word in words if word[0] in self.naming.names):
                connection.choose(mapping, SWITCHED)
        # A word without a key reaches no row.
        rows = len(keys) - sum(word[1] is None for word in words)
        if rows and request.verb.batch == "read":
            number = rows if self.profile["batch.multiget_counts"] == "keys" else 1
            connection.count("read", number, self._limits)
        elif rows and request.verb.batch == "write":
            if _done(request, got):
                connection.count("write", 1, self._limits)
            elif self.profile["batch.failed_write"] == "discards" or not connection.writes:
                connection.commit()


def _done(request: Request, got: str | None) -> bool:
    """Return whether a request succeeded; a request without a recorded reply counts as successful."""
    if not got:
        return True
    if request.verb.name.startswith(BINARY):
        return got.split()[1:2] == ["ok"]
    if request.verb.batch == "read":
        return got.startswith(("VALUE ", "VA ", "HD"))
    return not got.startswith(UNDONE)
