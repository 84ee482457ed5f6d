"""One connection's semantics: what it is bound to, and the verb each command goes to.

Rules: nothing here reads a clock or does I/O; a generator that is abandoned (its store failed) leaves the session
usable.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple, ParamSpec

from kvref.engine.access import UNLIMITED, Access
from kvref.engine.batch import Batch, Limits
from kvref.engine.cache.memory import Cache, Pending
from kvref.engine.counters import Counters
from kvref.engine.mapping import MARK, Directory, Mapping, Switch, is_whole_name, mapping_name, split_word
from kvref.engine.operations import (
    Cell,
    DeadlockError,
    LoadMapping,
    LockWaitError,
    Lookup,
    Operation,
    Recheck,
    Row,
    TransactionLostError,
)
from kvref.engine.rules import Rules
from kvref.engine.shared_state import Crawler, Marks, VBuckets, Verbosity
from kvref.engine.values import RefusedError, join_value, key_cell, shown_flags
from kvref.errors import StoreError
from kvref.protocol.replies import ClientError, Fault, Item, Reply, ServerError, Status

P = ParamSpec("P")


class UnfitError(Exception):
    """The table no longer fits its mapping; the text is the cause."""


LOCK_WAIT: Final = "lock wait timeout"
# The plugin has no limit here; this one keeps one client from taking the memory of all.
MIN_REPLY: Final = 1 << 20  # the lowest `reply_size_max`
MAX_REPLY: Final = 64 << 20


def conflict(lost: TransactionLostError) -> Fault | None:
    """Return the fault of a lost transaction: a deadlock is one that the same request may avoid later."""
    return Fault.CONFLICT if isinstance(lost, DeadlockError) else None


@dataclass(slots=True)
class Shared:
    """What all sessions of a server share.

    Args:
        cas: next cas numbers; one counter for all mappings (columns:cas-004).
        process: rows of `stats` that only the server knows (pid, uptime, connections).
        clock: returns UNIX time in whole seconds; a row whose command had to wait for it may have expired meanwhile.
        item_size_max: largest value in bytes that append and prepend may make, where the profile bounds them.
        marks: state of rows for meta commands.
        reply_size_max: maximum bytes of items in the reply to one get.
        crawler: whether `lru_crawler` is enabled.
        clients: returns the rows of `stats conns` for a session.
        sticky_mapping: whether a word with a mapping and a key selects the mapping for the commands that follow, too.
        oversized_set_removes: whether a set with a rejected value removes the existing row, if the profile has this
            behavior.
    """

    rules: Rules
    directory: Directory
    cas: Iterator[int]
    counters: Counters
    process: Callable[[], dict[str, str]] = field(default=dict)
    clock: Callable[[], int] = field(default=lambda: 0)
    item_size_max: int = 1 << 20
    limits: Limits = field(default_factory=Limits)
    cache: Cache = field(default_factory=Cache)
    vbuckets: VBuckets = field(default_factory=VBuckets)
    marks: Marks = field(default_factory=Marks)
    reply_size_max: int = MAX_REPLY
    oversized_set_removes: bool = True
    crawler: Crawler = field(default_factory=Crawler)
    clients: Callable[[Session], list[tuple[str, str]]] = lambda _: []
    verbosity: Verbosity = field(default_factory=Verbosity)
    sticky_mapping: bool = True

    def __post_init__(self) -> None:
        self.counters.prefixes.by_beginning = self.rules.counts_by_beginning


class Binding(NamedTuple):
    """What a session in another process needs to go on.

    Args:
        name: of the mapping that was selected by its name; None: the default mapping is in force.
        started: a command has needed a mapping.
    """

    name: str | None
    started: bool


class Session:
    """The state of one connection."""

    __slots__ = (
        "_before", "_bound", "_counts", "_generation", "_outer", "access", "batch", "flushed", "pending", "rules",
        "shared", "started", "switch_disabled", "switched_by_key", "written_cas",
    )  # fmt: skip

    def __init__(self, shared: Shared, access: Access = UNLIMITED) -> None:
        self.shared = shared
        self.access = access
        self.rules = shared.rules
        self.pending = Pending(shared.cache)
        self.batch = Batch(shared.limits, shared.rules, self.pending)
        self._bound: Mapping | None = None  # the default mapping is in force
        self.started = False  # a command has needed a mapping: from then on the one in force answers to its name
        # A key was looked up and more words followed: until a get answers an item or ends in a look-up, 8.0 only cuts
        # mappings off words, known or not (core:mget-002..004; multi_get in innodb_engine.cc outlives the command).
        self.switch_disabled = False
        self.written_cas = 0  # number that the command in hand gave its row
        self.flushed = False  # a flush_all emptied a table, which the reply OK does not show; the reader resets it
        self._generation = shared.directory.generation
        # What was bound outside the command in hand, which has selected another mapping for itself alone.
        self._outer: tuple[Mapping | None, int] | None = None
        # What a command without a reply has found bound, to which it returns if it begins again; None between commands.
        self._before: tuple[Mapping | None, int, bool, bool] | None = None
        self._counts: list[Callable[[], None]] | None = None  # what it adds to the counters
        # Name of the mapping that a word with a key was the first to bind, for the log; empty once it is logged.
        self.switched_by_key: str | None = None

    def clone(self) -> Session:
        """Return a session with the same rights that is bound to the same mapping, and has done nothing else."""
        clone = Session(self.shared, self.access)
        clone._bound, clone._generation, clone.started = self._bound, self._generation, self.started
        return clone

    @property
    def binding(self) -> Binding | None:
        """Return what a session in another process goes on with; None where that one would not act the same."""
        if self.switch_disabled or self.batch.open:
            return None
        return Binding(None if self._bound is None else self._bound.name, self.started)

    def resume(self, binding: Binding) -> None:
        """Continue a session of another process; the next command finds its mapping by the name, as after a reload."""
        self.started = binding.started
        if binding.name is not None:
            self._bound = replace(self.shared.directory.default, name=binding.name)
            self._generation = -1

    def begin(self) -> None:
        """Begin a command; one that has no reply yet begins again as if it had not been tried, see `settle`."""
        if self._before is None:
            self._before = self._bound, self._generation, self.switch_disabled, self.started
        else:
            self._bound, self._generation, self.switch_disabled, self.started = self._before
        self._counts = None
        self.written_cas = 0

    def defer_count(self, count: Callable[P, None], *arguments: P.args, **named: P.kwargs) -> None:
        """Call `count` once the command in hand has its reply: until then it may begin again, and counts once."""
        if self._counts is None:
            self._counts = []
        self._counts.append(partial(count, *arguments, **named))

    def settle(self) -> None:
        """Count the command in hand, whose reply is given: it does not begin again."""
        counts, self._counts, self._before = self._counts, None, None
        for count in counts or ():
            count()

    @property
    def bound(self) -> bool:
        """Return whether the mapping in force was selected by its name."""
        return self._bound is not None

    def split(self, word: bytes) -> Switch | None:
        """Split a client's word by the delimiter in force."""
        return split_word(word, self.shared.directory.delimiter, self.rules)

    def switch(self, name: bytes, key: bytes = b"") -> Generator[Operation, Any, Mapping | None]:
        """Bind to a mapping by a client's name and return it; an unknown name returns None and binds nothing.

        Args:
            key: what the client's word has behind it. Unless `sticky_mapping` is on, a word with a key binds for the
                command in hand only.

        Raises:
            RefusedError: the batch that a switch commits is lost; nothing is bound.
        """
        if not name:
            return None  # a container without a name may be the default mapping, but no word reaches it (default-036)
        naming = self.shared.directory.naming
        text = mapping_name(name, naming, self.rules)
        before = self._bound, self._generation
        current = self._bound or self.shared.directory.default
        mapping = yield from self._switch(text, whole=is_whole_name(name, text, naming, self.rules))
        if mapping is None:
            return None
        if not key:
            self._outer = None
        elif not self.shared.sticky_mapping:
            self._outer = self._outer or before
        elif mapping.name != current.name and self.switched_by_key is None:
            self.switched_by_key = mapping.name
        return mapping

    @property
    def temporarily_bound(self) -> bool:
        """Return whether the command in hand has another mapping than the commands around it."""
        return self._outer is not None and (self._outer[0] or self.shared.directory.default) is not self._bound

    def restore_binding(self) -> None:
        """Bind what was bound outside the command that has ended, see `switch`."""
        if self._outer is not None:
            (self._bound, self._generation), self._outer, self.switch_disabled = self._outer, None, False

    def _switch(self, name: str, *, whole: bool = True) -> Generator[Operation, Any, Mapping | None]:
        directory = self.shared.directory
        current = self._bound or directory.default
        mapping: Mapping | None = None
        if self._is_current(name, whole=whole):
            mapping = current
        elif self._is_exact(whole=whole):
            mapping = directory.find(name)
        # What is read again is another one, though the store may return what it has kept.
        switched = mapping is not current or (self._bound is not None and self._generation != directory.generation)
        if mapping is None:
            mapping = yield LoadMapping(name)
            if mapping is None:
                return None
            directory.remember(mapping)
        if not self.access.includes(mapping, directory.naming):
            return None
        if switched:
            reason = yield from self.batch.switched()
            if reason is not None:
                raise RefusedError(ServerError(reason))
        self._bound, self._generation, self.started = mapping, directory.generation, True
        return mapping

    def _is_current(self, name: str, *, whole: bool) -> bool:
        """Return whether a name leaves the mapping in force as it is."""
        directory = self.shared.directory
        if not self.started or self._generation != directory.generation:
            return False
        return self.switch_disabled or (self._is_exact(whole=whole) and (self._bound or directory.default).name == name)

    def _is_exact(self, *, whole: bool) -> bool:
        # The plugin compares the client's bytes with the row's name and its hash's, before any are cut (samename-003).
        return whole or not self.shared.directory.by_exact_name

    def key_of_bound(self, word: bytes) -> bytes | None:
        """Return the key in a word that names the mapping in force, and binds nothing; None for any other word.

        Such a word switches nothing: the store is not queried, and no batch is committed. With `sticky_mapping`, the
        connection must be bound to the mapping by its name.
        """
        target = self.split(word)
        if target is None or not (target.name and target.key and (self.bound or not self.shared.sticky_mapping)):
            return None
        naming = self.shared.directory.naming
        name = mapping_name(target.name, naming, self.rules)
        whole = is_whole_name(target.name, name, naming, self.rules)
        return target.key if self._is_current(name, whole=whole) else None

    def name_of_bound(self, word: bytes) -> bytes | None:
        """Return what is in front of the key in a word that names the bound mapping, see `key_of_bound`.

        In front of any other key it names the same mapping, because it contains the name and the delimiter behind it.
        None for words where that is not so.
        """
        key, target = self.key_of_bound(word), self.split(word)
        if key is None or target is None or not (target.delimited and word.startswith(MARK + target.name)):
            return None
        name = word.removesuffix(key)
        return None if len(name) < self.rules.shortest_word else name

    def start(self) -> bool:
        """Bind the default mapping if none is bound; return whether this is the first command that needs a mapping."""
        first, self.started = not self.started, True
        return first

    def mapping(self) -> Generator[Operation, Any, Mapping]:
        """Return the bound mapping; raises RefusedError if a reload removed it: no other table replaces it."""
        self.start()
        if self._bound is None:
            default = self.default
            return default if default is not None else (yield from self._first_shown())
        if self._generation != self.shared.directory.generation:
            name = self._bound.name
            if (yield from self._switch(name)) is None:
                raise RefusedError(ServerError(f"mapping {name} is no longer in containers: bind another"))
        return self._bound

    @property
    def default(self) -> Mapping | None:
        """Return the default mapping, None where its listener does not have it."""
        directory = self.shared.directory
        return directory.default if self.access.includes(directory.default, directory.naming) else None

    def _first_shown(self) -> Generator[Operation, Any, Mapping]:
        name = self.access.mappings[0]
        mapping = yield from self._switch(name)
        if mapping is None:
            raise RefusedError(ServerError(f"mapping {name} is not in containers: this listener is limited to it"))
        return mapping

    @property
    def in_force(self) -> Mapping | None:
        """Return the mapping in force, None where the next command that needs one has to read `containers` for it."""
        if self._bound is None:
            return self.default
        return self._bound if self._generation == self.shared.directory.generation else None

    @property
    def plannable_mapping(self) -> Mapping | None:
        """Return the mapping in force, None while it must be read, or a multi-get has disabled `@@`."""
        return None if self.switch_disabled else self.in_force

    def resolve(self, word: bytes, *, switches: bool) -> Generator[Operation, Any, tuple[Mapping, bytes] | Status]:
        """Find the mapping and the key a word names, switching where the verb does.

        Args:
            switches: the verb reads `@@`.

        Returns:
            Mapping and key (empty for a switch word), or NOT_FOUND for an unknown mapping.

        Raises:
            RefusedError: a delimiter without a key behind it, where the profile refuses that.
        """
        target = self.split(word) if switches else None
        if target is None:
            return (yield from self.mapping()), word
        if self.rules.refuses_empty_key and target.delimited and not target.key:
            raise RefusedError(ClientError(f"no key behind the delimiter in {word.decode('utf-8', 'replace')}"))
        mapping = yield from self.switch(target.name, target.key)
        return Status.NOT_FOUND if mapping is None else (mapping, target.key)

    def check(self, mapping: Mapping) -> Generator[Operation, Any, None]:
        """Check the mapping's table before a row is read or written; raises UnfitError if it does not fit any more."""
        if mapping.fault:
            yield Recheck(mapping)
            if mapping.fault:
                raise UnfitError(mapping.fault)

    def key_to_find(self, mapping: Mapping, key: bytes) -> Cell:
        """Return the key column's content to look for, or None when no row can be found by this key."""
        if mapping.unsearchable:
            return None
        try:
            return key_cell(mapping.key, key, self.rules)
        except RefusedError:
            return None

    def existing(self, mapping: Mapping, key: bytes, now: int) -> Generator[Operation, Any, Row | None]:
        """Return the row that a command works on, locked; None if there is none, or the key is empty."""
        yield from self.check(mapping)
        cell = self.key_to_find(mapping, key) if key else None
        yield from self.batch.write()
        row: Row | None = None if cell is None else (yield Lookup(mapping, cell, for_update=True))
        return None if row is None or self.expired_for_write(row.expiry, now) else row

    def expired_for_write(self, expiry: int | None, now: int) -> bool:
        """Return whether a row is expired for a write that has looked it up, see `count_expired`."""
        return self.rules.writes_check_expiry and self.count_expired(expiry, now)

    def item(self, word: bytes, row: Row) -> Item:
        """Return a row as get answers it under `word`."""
        data = join_value(row.values, self.shared.directory.separator)
        return Item(word, shown_flags(row.flags), data, (row.cas or 0) % (1 << 64))

    def end_batch(self) -> Generator[Operation, Any, Reply]:
        """Commit an idle or closed connection's batch; returns OK, or why it is lost, unless it is still open."""
        fault = None
        try:
            reason = yield from self.batch.commit()
        except TransactionLostError as lost:
            reason, fault = self.batch.lost(str(lost)), conflict(lost)
        except LockWaitError:
            reason, fault = LOCK_WAIT, Fault.CONFLICT
        except StoreError as error:
            reason = str(error)
        return Status.OK if reason is None else ServerError(reason, fault)

    def check_reply(self, size: int) -> None:
        """Raise RefusedError if the items found for one get have more than `reply_size_max` bytes."""
        if size > (most := self.shared.reply_size_max):
            raise RefusedError(ServerError(f"out of memory writing get response: more than {most} bytes"))

    @property
    def refused_set_removes(self) -> bool:
        """Return whether a set whose value its columns refuse removes the row that is there."""
        return self.rules.refused_set_removes and self.shared.oversized_set_removes

    def is_expired(self, expiry: int | None, now: int) -> bool:
        """Return whether a row that a command has looked up is expired, see `Rules.is_expired`."""
        return bool(expiry) and self.rules.is_expired(expiry, max(now, self.shared.clock()))

    def count_expired(self, expiry: int | None, now: int) -> bool:
        """Return what `is_expired` returns, and count expired rows in `get_expired`."""
        expired = self.is_expired(expiry, now)
        if expired:
            self.defer_count(self.shared.counters.expired)
        return expired

    def is_another(self, cas: int | None, requested: int) -> bool:
        """Return whether an item has another cas number than a binary request, whose 0 matches any."""
        return bool(requested) and self.rules.checks_every_cas and (cas or 0) % (1 << 64) != requested

    def next_cas(self) -> int:
        """Take a number from the counter: the one that the reply to a write shows."""
        self.written_cas = next(self.shared.cas)
        return self.written_cas
