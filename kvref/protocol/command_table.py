"""The table of commands, from which parsers, dispatch, access rules, cache policies, counters and metrics derive.

To add a command, write its record in `commands.py`, its row here, and its handler in the engine. A row without rights
or policies, a record without a row, a row without a handler, and cache policies that the memory cache does not support
are errors at import. The engine rejects commands that are not in this table wherever anything is withheld.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Any, Final, get_args

from kvref.protocol import commands as c
from kvref.protocol import crawler, grammar, meta, opcodes
from kvref.protocol.commands import EVERY_RIGHT, NO_RIGHT, Right
from kvref.protocol.grammar import Parsed
from kvref.protocol.opcodes import Opcode
from kvref.protocol.replies import Fault, Number, Reply, ServerError, Status
from kvref.protocol.rules import WireRules

_MANY: Final = 1 << 30
OTHER: Final = "other"  # the name of commands without a text form, see `CommandRow.timed_as`


class PolicyKind(Enum):
    """The columns of `cache_policies`, in their order; the values are the names of the fields of `Policies`."""

    GET = "get"
    SET = "set"
    DELETE = "delete"
    FLUSH = "flush"


@dataclass(frozen=True, slots=True)
class TextForm:
    """How a command is written in the text protocol.

    Args:
        fewest: words of its line, the verb included.
        most: words of its line.
        parse: returns the command of a line that has as many words.
        length_at: index of the word with the length of its data, None for a command without data.
        unlimited: a line without an end is waited for beyond 1024 bytes.
    """

    fewest: int
    most: int
    parse: Callable[[list[bytes], WireRules], Parsed]
    length_at: int | None = None
    unlimited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRow:
    """One command.

    Args:
        beyond_plugin: memcached 1.6 has it and the plugin never had it: it exists where the profile's fact
            `verbs.beyond_plugin` is true.
        needs: the rights without which a listener rejects it, or a function of the command that returns them.
        policies: columns of `cache_policies` that apply to it; the last one decides where it looks, and it does nothing
            if any of them is `disabled`. Or a function of the command that returns them.
        counters: returns the names of the counters of `stats` that a command and its reply increment. The third
            argument says whether a missing number counts as found. None: the handler counts, or nothing does.
        metrics: its values of the label `command` in the metrics. `stats` counts each NAME as NAME_hits and
            NAME_misses, or as cmd_NAME.
    """

    command: type
    beyond_plugin: bool
    needs: Right | Callable[[Any], Right]
    policies: tuple[PolicyKind, ...] | Callable[[Any], tuple[PolicyKind, ...]]
    counters: Callable[[Any, Reply, bool], tuple[str, ...]] | None = None
    metrics: tuple[str, ...] = ()
    text: Mapping[bytes, TextForm] = field(default_factory=dict)
    binary: Mapping[int, Opcode] = field(default_factory=dict)

    def timed_as(self, verb: str) -> str:
        """Return the name under which the durations of this command are counted, one of `TIMED`."""
        if verb in self.metrics:
            return verb
        return self.metrics[0] if self.metrics else next((each.decode() for each in self.text), OTHER)


def _needs_of_stats(command: c.Stats) -> Right:
    """Return what a sub-command needs: `detail` shows keys, `conns` clients; others change what all see."""
    match command.words:
        case [b"detail", b"on" | b"off", *_]:
            return Right.WRITE | Right.ALL_MAPPINGS
        case [b"detail", *_]:
            return Right.ALL_MAPPINGS
        case [b"reset", *_]:
            return Right.WRITE
        case [b"conns", *_]:
            return Right.LIST_CLIENTS
        case _:
            return NO_RIGHT


# Of the text protocol only, as in memcached.
_TOO_LARGE: Final = ("store_too_large",)
_LOST: Final = {Fault.TOO_LARGE: _TOO_LARGE, Fault.OUT_OF_MEMORY: ("store_no_memory",)}


def _count_store(command: c.Store, reply: Reply, _missing_counted: bool) -> tuple[str, ...]:
    # An append whose joined value is too large is not an item that was too large to be stored.
    appends = command.verb in ("append", "prepend")
    fault = reply.fault if isinstance(reply, ServerError) and command.frame is None and not appends else None
    lost = _LOST.get(fault, ()) if fault is not None else ()
    if command.verb != "cas":
        return ("cmd_set", *lost)
    match reply:
        case Status.STORED:
            return ("cas_hits",)
        case Status.EXISTS:
            return ("cas_badval",)
        case Status.NOT_FOUND:
            return ("cas_misses",)
        case _:
            return lost


def _count_delete(_command: c.Delete, reply: Reply, _missing_counted: bool) -> tuple[str, ...]:
    if reply is Status.DELETED:
        return ("delete_hits",)
    return ("delete_misses",) if reply is Status.NOT_FOUND else ()


def _count_touch(_command: c.Touch, reply: Reply, _missing_counted: bool) -> tuple[str, ...]:
    if reply is Status.TOUCHED:
        return ("cmd_touch", "touch_hits")
    return ("cmd_touch", "touch_misses") if reply is Status.NOT_FOUND else ()


def _count_arithmetic(command: c.Arithmetic, reply: Reply, missing_counted: bool) -> tuple[str, ...]:
    verb = "incr" if command.increment else "decr"
    if isinstance(reply, Number) or (reply is Status.NOT_FOUND and missing_counted):
        return (f"{verb}_hits",)
    return (f"{verb}_misses",) if reply is Status.NOT_FOUND else ()


def _writes(row: CommandRow) -> bool:
    return isinstance(row.needs, Right) and Right.WRITE in row.needs


def _with_quiet(loud: int, quiet: int, form: Opcode) -> dict[int, Opcode]:
    """Return an opcode and the one whose success is not answered."""
    return {loud: form, quiet: replace(form, quiet=True)}


_STORE: Final = TextForm(5, 6, grammar.store, length_at=4)
_GET_AND_TOUCH: Final = TextForm(2, _MANY, grammar.get_and_touch, unlimited=True)
_ARITHMETIC: Final = TextForm(3, 4, grammar.arithmetic)

TABLE: Final = (
    CommandRow(
        command=c.Get,
        beyond_plugin=False,
        needs=NO_RIGHT,
        policies=(PolicyKind.GET,),
        metrics=("get",),
        text={
            b"get": TextForm(2, _MANY, grammar.get, unlimited=True),
            b"gets": TextForm(2, _MANY, grammar.get, unlimited=True),
            b"bget": TextForm(2, _MANY, grammar.get),
        },
        binary={
            **_with_quiet(0x00, 0x09, Opcode(opcodes.get, key=True)),
            **_with_quiet(0x0C, 0x0D, Opcode(opcodes.get, key=True, with_key=True)),
        },
    ),
    CommandRow(
        command=c.Store,
        beyond_plugin=False,
        needs=Right.WRITE,
        policies=(PolicyKind.SET,),
        counters=_count_store,
        metrics=("set", "cas"),
        text={
            **dict.fromkeys((b"set", b"add", b"replace", b"append", b"prepend"), _STORE),
            b"cas": TextForm(6, 7, grammar.store, length_at=4),
        },
        binary={
            **_with_quiet(0x01, 0x11, Opcode(partial(opcodes.store, "set"), (8,), key=True, value=True)),
            **_with_quiet(0x02, 0x12, Opcode(partial(opcodes.store, "add"), (8,), key=True, value=True)),
            **_with_quiet(0x03, 0x13, Opcode(partial(opcodes.store, "replace"), (8,), key=True, value=True)),
            **_with_quiet(0x0E, 0x19, Opcode(partial(opcodes.join, "append"), key=True, value=True)),
            **_with_quiet(0x0F, 0x1A, Opcode(partial(opcodes.join, "prepend"), key=True, value=True)),
        },
    ),
    CommandRow(
        command=c.Delete,
        beyond_plugin=False,
        needs=Right.WRITE,
        policies=(PolicyKind.DELETE,),
        counters=_count_delete,
        metrics=("delete",),
        text={b"delete": TextForm(2, 4, grammar.delete)},
        binary=_with_quiet(0x04, 0x14, Opcode(opcodes.delete, key=True)),
    ),
    CommandRow(
        command=c.Arithmetic,
        beyond_plugin=False,
        needs=Right.WRITE,
        policies=(PolicyKind.SET,),
        counters=_count_arithmetic,
        metrics=("incr", "decr"),
        text={b"incr": _ARITHMETIC, b"decr": _ARITHMETIC},
        binary={
            **_with_quiet(0x05, 0x15, Opcode(partial(opcodes.add, increment=True), (20,), key=True)),
            **_with_quiet(0x06, 0x16, Opcode(partial(opcodes.add, increment=False), (20,), key=True)),
        },
    ),
    CommandRow(
        command=c.Touch,
        beyond_plugin=True,
        needs=Right.WRITE,
        policies=(PolicyKind.SET,),
        counters=_count_touch,
        metrics=("touch",),
        text={b"touch": TextForm(3, 4, grammar.touch)},
    ),
    CommandRow(
        command=c.GetAndTouch,
        beyond_plugin=True,
        needs=Right.WRITE,
        policies=(PolicyKind.GET, PolicyKind.SET),
        text={b"gat": _GET_AND_TOUCH, b"gats": _GET_AND_TOUCH},
        # Unlike in memcached, a value after the key is not the beginning of a next frame.
        binary={
            opcodes.TOUCH: Opcode(opcodes.get_and_touch, (4,), key=True),
            **_with_quiet(0x1D, 0x1E, Opcode(opcodes.get_and_touch, (4,), key=True)),
            **_with_quiet(0x23, 0x24, Opcode(opcodes.get_and_touch, (4,), key=True, with_key=True)),
        },
    ),
    CommandRow(
        command=c.MetaGet,
        beyond_plugin=True,
        needs=lambda command: NO_RIGHT if command.exptime is None and command.vivify is None else Right.WRITE,
        policies=(),
        text={b"mg": TextForm(2, _MANY, meta.get)},
    ),
    CommandRow(
        command=c.MetaSet,
        beyond_plugin=True,
        needs=Right.WRITE,
        policies=(),
        text={b"ms": TextForm(2, _MANY, meta.set_, length_at=2)},
    ),
    CommandRow(
        command=c.MetaDelete,
        beyond_plugin=True,
        needs=Right.WRITE,
        policies=(),
        text={b"md": TextForm(2, _MANY, meta.delete)},
    ),
    CommandRow(
        command=c.MetaArithmetic,
        beyond_plugin=True,
        needs=Right.WRITE,
        policies=(),
        text={b"ma": TextForm(2, _MANY, meta.arithmetic)},
    ),
    CommandRow(
        command=c.MetaDebug,
        beyond_plugin=True,
        needs=NO_RIGHT,
        policies=(),
        # Of the meta commands only me counts there (process_meta_command, proto_text.c).
        counters=lambda _command, _reply, _missing_counted: ("cmd_meta",),
        text={b"me": TextForm(1, _MANY, meta.debug)},
    ),
    CommandRow(
        command=c.MetaNoop,
        beyond_plugin=True,
        needs=NO_RIGHT,
        policies=(),
        text={b"mn": TextForm(1, _MANY, meta.noop)},
    ),
    CommandRow(
        command=c.FlushAll,
        beyond_plugin=False,
        needs=Right.WRITE | Right.FLUSH,
        policies=(PolicyKind.FLUSH,),
        counters=lambda _command, _reply, _missing_counted: ("cmd_flush",),
        metrics=("flush",),
        text={b"flush_all": TextForm(1, 3, grammar.flush_all)},
        binary=_with_quiet(0x08, 0x18, Opcode(opcodes.flush, (0, 4))),
    ),
    CommandRow(
        command=c.Bind,
        beyond_plugin=False,
        needs=NO_RIGHT,
        policies=(),
        text={b"bind": TextForm(2, 2, grammar.bind)},
    ),
    CommandRow(
        command=c.Stats,
        beyond_plugin=False,
        needs=_needs_of_stats,
        policies=(),
        text={b"stats": TextForm(1, _MANY, grammar.stats)},
        binary={0x10: Opcode(opcodes.stat, key=None, leaves_value=True)},
    ),
    CommandRow(
        command=c.Version,
        beyond_plugin=False,
        needs=NO_RIGHT,
        policies=(),
        text={b"version": TextForm(1, _MANY, grammar.version)},
        binary={0x0B: Opcode(lambda _header, _body, _rules: c.Version())},
    ),
    CommandRow(
        command=c.Verbosity,
        beyond_plugin=False,
        needs=Right.WRITE,
        policies=(),
        text={b"verbosity": TextForm(2, 3, grammar.verbosity)},
        binary={0x1B: Opcode(opcodes.verbosity, (4,))},
    ),
    CommandRow(
        command=c.CacheMemlimit,
        beyond_plugin=True,
        needs=Right.WRITE,
        policies=(),
        text={b"cache_memlimit": TextForm(2, 3, grammar.cache_memlimit)},
    ),
    CommandRow(
        command=c.KeyDump,
        beyond_plugin=True,
        needs=Right.LIST_KEYS,
        policies=(),
        # One line form for four commands; the parser of the crawler's commands distinguishes them.
        text={b"lru_crawler": TextForm(1, _MANY, crawler.parse)},
    ),
    CommandRow(
        command=c.Crawl,
        beyond_plugin=True,
        needs=NO_RIGHT,
        policies=(),
    ),
    CommandRow(
        command=c.SwitchCrawler,
        beyond_plugin=True,
        needs=Right.WRITE | Right.LIST_KEYS,
        policies=(),
    ),
    CommandRow(
        command=c.TuneCrawler,
        beyond_plugin=True,
        needs=NO_RIGHT,
        policies=(),
    ),
    CommandRow(
        command=c.VBucket,
        beyond_plugin=False,
        needs=lambda command: NO_RIGHT if command.verb == "get" else Right.WRITE,
        policies=(),
        binary={
            opcode: Opcode(partial(opcodes.vbucket, verb), own_engine=True)
            for opcode, verb in ((0x83, "set"), (0x84, "get"), (0x85, "delete"))
        },
    ),
    CommandRow(
        command=c.Noop,
        beyond_plugin=False,
        needs=NO_RIGHT,
        policies=(),
        binary={opcodes.NOOP: Opcode(lambda _header, _body, _rules: c.Noop())},
    ),
    CommandRow(
        command=c.Quit,
        beyond_plugin=False,
        needs=NO_RIGHT,
        policies=(),
        text={b"quit": TextForm(1, _MANY, grammar.quit_)},
        binary=_with_quiet(0x07, 0x17, Opcode(lambda _header, _body, _rules: c.Quit())),
    ),
    CommandRow(command=c.Foreign, beyond_plugin=False, needs=NO_RIGHT, policies=()),
    # Besides what the grammar answers to malformed commands, what it answers whatever the arguments are.
    CommandRow(
        command=c.Refused,
        beyond_plugin=False,
        needs=NO_RIGHT,
        # A set that is too large removes its key (more:policy-167).
        policies=lambda command: (PolicyKind.DELETE,) if command.removes else (),
        counters=lambda command, _reply, _missing_counted: _TOO_LARGE if command.too_large else (),
    ),
)
# Always refused, with a specific text, in the profiles that have what memcached 1.6 has.
REFUSED_BEYOND_PLUGIN: Final = {
    b"refresh_certs": TextForm(1, _MANY, grammar.refresh_certs),
    b"shutdown": TextForm(1, _MANY, grammar.shutdown),
}

ROWS: Final[dict[type, CommandRow]] = {row.command: row for row in TABLE}
if ROWS.keys() ^ set(get_args(c.Command)) or len(ROWS) != len(TABLE):
    raise TypeError("each command of commands.py needs exactly one row")

# By verb and by opcode: what every profile has, and what those have that go beyond the plugin.
TEXT: Final = {verb: form for row in TABLE if not row.beyond_plugin for verb, form in row.text.items()}
TEXT_BEYOND_PLUGIN: Final = {
    verb: form for row in TABLE if row.beyond_plugin for verb, form in row.text.items()
} | REFUSED_BEYOND_PLUGIN
BINARY: Final = {opcode: form for row in TABLE if not row.beyond_plugin for opcode, form in row.binary.items()}
BINARY_BEYOND_PLUGIN: Final = {
    opcode: form for row in TABLE if row.beyond_plugin for opcode, form in row.binary.items()
}

# Of the commands that write whatever their arguments are.
WRITING_VERBS: Final = frozenset(verb for row in TABLE if _writes(row) for verb in row.text)
WRITING_OPCODES: Final = frozenset(opcode for row in TABLE if _writes(row) for opcode in row.binary)

# Names under which durations are counted, by verb, and all of them.
TIMED_VERBS: Final = {verb: row.timed_as(verb.decode()) for row in TABLE for verb in row.text}
TIMED: Final = (*dict.fromkeys(TIMED_VERBS.values()), OTHER)


def timed_as(command: c.Command) -> str:
    """Return the name under which the duration of a command is counted, one of `TIMED`."""
    match command:
        case c.Store():
            verb = command.verb
        case c.Arithmetic():
            verb = "incr" if command.increment else "decr"
        case _:
            verb = ""
    return ROWS[type(command)].timed_as(verb)


def needs(command: c.Command) -> Right:
    """Return the rights without which a listener must reject a command: all of them if the command has no row."""
    row = ROWS.get(type(command))
    if row is None:
        return EVERY_RIGHT
    return row.needs if isinstance(row.needs, Right) else row.needs(command)


def policy_kinds(command: c.Command) -> tuple[PolicyKind, ...]:
    """Return the columns of `cache_policies` that apply to a command, none if it does not look for items."""
    policies = ROWS[type(command)].policies
    return policies if isinstance(policies, tuple) else policies(command)


def text_form(verb: bytes, rules: WireRules) -> TextForm | None:
    """Return how a verb is written, None if the profile does not have it."""
    form = TEXT.get(verb)
    return TEXT_BEYOND_PLUGIN.get(verb) if form is None and rules.beyond_plugin else form


def binary_form(opcode: int, rules: WireRules) -> Opcode | None:
    """Return what a frame with an opcode carries, None if the profile does not have the opcode."""
    form = BINARY.get(opcode)
    return BINARY_BEYOND_PLUGIN.get(opcode) if form is None and rules.beyond_plugin else form
