"""Mutants of touch and the meta commands: times, cas numbers, flags, marks, keys in base64."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Any

from kvref.engine import access_log, dispatch, shared_state
from kvref.engine.items import sums
from kvref.engine.plans import retrieve as plans_of_gets
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.meta import MetaWrites
from kvref.engine.plans.plan import CAS, CachedRow, Renewal
from kvref.engine.session import Session
from kvref.engine.steps import meta
from kvref.protocol import commands
from kvref.protocol import grammar as lines
from kvref.protocol import meta as grammar
from kvref_testbed.mutants.mutant import OperationGen, breaks, put, put_decisions, put_fact


@breaks("KV-TOUCH-001")
def knows_no_touch() -> None:
    """touch, gat and the meta commands are unknown."""
    put_fact("verbs.beyond_plugin", value=False)


@breaks("KV-MS-018")
def runs_the_data_of_a_refused_ms() -> None:
    """The data of a refused storage line is read as a command."""
    put_fact("text.refused_data", "read-as-command")


@breaks("KV-TOUCH-006")
def touches_the_cas_number_too() -> None:
    """A touch is a write like any other."""
    renewed = plans_of_gets.renewed

    def renumbered(bound: Bound, row: CachedRow, time: int) -> Any:
        new, written = renewed(bound, row, time)
        if new is None or written is None or len(written) == 1:
            return new, written
        return (*new[:CAS], (new[CAS] or 0) + 1, *new[CAS + 1 :]), Renewal(((new[CAS] or 0) + 1, time))

    put(plans_of_gets, "renewed", renumbered)


@breaks("KV-TOUCH-025")
def answers_a_gat_as_a_get() -> None:
    """A row is found and its time stays."""
    put(plans_of_gets, "renewed", lambda _bound, _row, _time: (None, None))


@breaks("KV-MG-012")
def answers_misses_to_q() -> None:
    """The flag q is passed over."""
    has = commands.MetaRequest.has
    put(commands.MetaRequest, "has", lambda self, letter: letter != b"q" and has(self, letter))


@breaks("KV-MG-022")
def marks_no_gets() -> None:
    """Gets are not reads for h, only touches are."""
    for name in ("fetched", "fetched_all"):
        put(access_log.AccessLog, name, property(lambda self: lambda keys: None, lambda self, note: None))
    slot: Any = vars(access_log.AccessLog)["noted_all"]

    def changes_only(self: access_log.AccessLog) -> Any:
        note = slot.__get__(self)
        return lambda events: note([each for each in events if not isinstance(each, bytes)])

    put(access_log.AccessLog, "noted_all", property(changes_only, slot.__set__))


NEVER_PAST = 1 << 62  # UNIX second


@breaks("KV-MG-023")
def counts_idle_time_from_the_last_mg() -> None:
    """An item that is new to mg was accessed right now."""
    access = shared_state.Marks.access
    put(shared_state.Marks, "access", lambda *item: access(*item)._replace(time=NEVER_PAST))


@breaks("KV-MG-047")
def counts_idle_time_from_the_last_write() -> None:
    """A read sets h, and never the time."""
    replay = access_log.replay

    def without_times(events: Iterable[access_log.Event], *others: Any) -> Any:
        return replay([each for each in events if not isinstance(each, bytes)], *others)

    put(shared_state, "replay", without_times)


@breaks("KV-MG-048")
def stores_sums_as_new_items() -> None:
    """A sum is a set."""
    put(sums, "change_of_sum", lambda _old, _result: access_log.Change.STORED)


@breaks("KV-MG-019")
def lets_everybody_win() -> None:
    """The server forgets which client received the flag to recache an item."""
    put(shared_state.Marks, "take", lambda self, mapping, key, entry: None)


@breaks("KV-MD-014")
def keeps_marks_over_a_write() -> None:
    """A mark is about a key, whatever is stored under it."""
    put(shared_state, "content_of", lambda entry: 1)


@breaks("KV-MD-008")
def deletes_what_it_should_mark() -> None:
    """The flag I of md is passed over."""
    delete = dispatch.HANDLERS[commands.MetaDelete]
    dispatch.HANDLERS[commands.MetaDelete] = lambda session, command, now: delete(
        session, replace(command, stale=False), now
    )

    def deleting(decide: Any) -> Any:
        return lambda self, row, word, command: decide(self, row, word, replace(command, stale=False))

    put_decisions(deleting, MetaWrites.delete)


@breaks("KV-MD-009")
def marks_under_the_old_number() -> None:
    """A stale item keeps its cas number."""

    put(meta, "renumbered", lambda _session, found: found.entry)

    def keeping(decide: Any) -> Any:
        def decided(self: Any, row: CachedRow, word: bytes, command: Any) -> Any:
            reply, new, parameters = decide(self, row, word, command)
            if not command.stale or parameters is None:
                return reply, new, parameters
            return reply, (*new[:CAS], row[CAS], *new[CAS + 1 :]), Renewal((row[CAS], *parameters[1:]))

        return decided

    put_decisions(keeping, MetaWrites.delete)


@breaks("KV-MS-010")
def stores_whatever_c_says() -> None:
    """The flag C of ms is passed over."""
    store = dispatch.HANDLERS[commands.MetaSet]

    def any_number(session: Session, command: commands.MetaSet, now: int) -> OperationGen:
        command.verb = command.verb.replace("cas", "set")
        return store(session, command, now)

    dispatch.HANDLERS[commands.MetaSet] = any_number


@breaks("KV-META-011")
def takes_base64_for_the_key() -> None:
    """The flag b is passed over."""
    put(grammar, "decoded_key", lambda word: word)


@breaks("KV-MA-004")
def always_makes_numbers() -> None:
    """ma of a missing key stores a first number without N too."""
    count = dispatch.HANDLERS[commands.MetaArithmetic]
    dispatch.HANDLERS[commands.MetaArithmetic] = lambda session, command, now: count(
        session, replace(command, initial=command.initial or 0), now
    )


@breaks("KV-MG-010")
def sorts_the_flags() -> None:
    """The flags of a reply are in alphabetical order."""
    encode = grammar.encode
    put(grammar, "encode", lambda command, reply: encode(replace(command, options=sorted(command.options)), reply))


@breaks("KV-MS-033")
def waits_for_two_gibibytes_of_ms() -> None:
    """A length of `ms` of 2147483646 or 2147483647 is too large, and as many bytes are thrown away."""
    read = lines.length_read
    put(grammar, "length_read", lambda word, rules: read(word, replace(rules, longest_length=(1 << 31) - 1)))


@breaks("KV-MS-034")
def keeps_the_item_of_an_ms_too_large() -> None:
    """An `ms` that is too large leaves the old item."""
    sized = lines.sized
    put(
        grammar, "sized", lambda store, length, rules: sized(store, length, replace(rules, too_large_set_removes=False))
    )


@breaks("KV-MS-043")
def calls_a_flag_that_occurs_twice_unknown() -> None:
    """A flag of `ms` that occurs twice is an invalid flag."""
    put(grammar, "DUPLICATE", grammar.UNKNOWN)


@breaks("KV-MS-046")
def takes_modes_of_any_length() -> None:
    """A mode of `ms` that is longer than a letter is an unknown mode."""
    put(grammar, "BAD_MODE_LENGTH", grammar.BAD_STORING)


@breaks("KV-MA-028")
def returns_first_numbers_to_q() -> None:
    """`ma` with the flags N and q replies, as in memcached 1.6.18."""
    encode = grammar.encode

    def loud(command: Any, reply: Any) -> bytes:
        if isinstance(command, commands.MetaArithmetic) and command.has(b"N"):
            command = replace(command, options=[option for option in command.options if option != b"q"])
        return encode(command, reply)

    put(grammar, "encode", loud)


@breaks("KV-MG-045")
def answers_no_hits_to_q() -> None:
    """`mg` with the flag q is silent for hits as for misses."""
    encode = grammar.encode

    def silent(command: Any, reply: Any) -> bytes:
        quiet = isinstance(command, commands.MetaGet) and command.has(b"q")
        return b"" if quiet else encode(command, reply)

    put(grammar, "encode", silent)


@breaks("KV-MG-049")
def returns_w_before_x() -> None:
    """The letters W, X and Z are in alphabetical order."""
    encode = grammar.encode
    put(
        grammar,
        "encode",
        lambda command, reply: encode(command, reply).replace(b" X W", b" W X").replace(b" Z X", b" X Z"),
    )


@breaks("KV-MG-050")
def compares_r_with_the_former_time() -> None:
    """The number of R is compared with the time before the command, wherever T is."""
    put(commands.MetaRequest, "precedes", lambda _self, _letter, *_others: True)


@breaks("KV-MG-051")
def compares_r_with_the_new_time() -> None:
    """The number of R is compared with the new time, wherever T is."""
    put(commands.MetaRequest, "precedes", lambda _self, _letter, *_others: False)


@breaks("KV-MS-050")
def returns_no_number_where_nothing_is_stored() -> None:
    """The flag c returns nothing unless something is stored."""
    encode = grammar.encode
    put(grammar, "encode", lambda command, reply: encode(command, reply).replace(b" c0", b""))


@breaks("KV-RBATCH-034")
def counts_no_read_of_a_meta_command() -> None:
    """`mg` and `me` are not counted as reads of a batch."""

    def uncounted(_session: Session) -> Generator[Any, Any, None]:
        yield from ()

    put(meta, "count_read", uncounted)
