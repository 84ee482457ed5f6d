"""Mutants of the text commands: conditions, expiry, numbers, ranges, answers."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import Any

from kvref.engine import counters, dispatch, stats, values
from kvref.engine.items import storage, sums, times
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Clear
from kvref.engine.plans.arithmetic import Arithmetic
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import ABSENT, EXPIRY, HIT
from kvref.engine.plans.retrieve import Touching
from kvref.engine.plans.store import Deletion, Storage
from kvref.engine.session import Session
from kvref.engine.shared_state import Crawler
from kvref.engine.steps import crawler as crawler_verb
from kvref.engine.steps import delete, ranges, retrieve
from kvref.engine.steps import stats as stats_verb
from kvref.protocol import codec, command_table, commands, crawler, foreign, grammar, replies, text
from kvref.server import client_warnings, connection, server, stats_rows
from kvref.storage.sqlite import store as sqlite_store
from kvref_testbed.mutants.mutant import OperationGen, breaks, put, put_decisions, put_fact


@breaks("KV-CORE-011")
def stores_whatever_the_cas_number() -> None:
    """`cas` stores with any number."""
    unmet = storage.unmet

    def careless(session: Session, verb: str, present: bool, cas: int | None, number: int) -> Any:
        answer = unmet(session, verb, present, cas, number)
        return None if answer is replies.Status.EXISTS else answer

    put(storage, "unmet", careless)


@breaks("KV-FLUSH-002")
def flushes_every_table() -> None:
    """`flush_all` empties all mapped tables."""

    def flush(session: Session, command: commands.FlushAll, now: int) -> OperationGen:
        tables: dict[str, Mapping] = {each.source: each for each in session.shared.directory.known.values()}
        for each in tables.values():
            yield Clear(each, session.rules.flush_on_reference)
        return (yield from delete.flush_all(session, command, now))

    dispatch.HANDLERS[commands.FlushAll] = flush


@breaks("KV-CORE-028")
def hides_expired_rows_from_get_only() -> None:
    """A row that is over is missing to `get` and still there for every other verb."""
    put_fact("expiry.hides_from", "get")


@breaks("KV-CORE-026")
def takes_thirty_days_for_a_date() -> None:
    """An expiry of thirty days is a date in 1970."""
    put_fact("expiry.longest_relative", 2591999)


@breaks("KV-CORE-009")
def gives_appended_items_other_flags() -> None:
    """`append` and `prepend` store the flags and the expiry of the request."""
    put_fact("append.flags_and_expiry", "request")


@breaks("KV-ARITH-016")
def counts_on_text() -> None:
    """`incr` and `decr` count on the number that a text begins with, or on 0."""
    put_fact("arith.text", "leading-number")


@breaks("KV-ARITH-025")
def narrows_amounts() -> None:
    """`incr` and `decr` take the low 32 bits of an amount."""
    put_fact("arith.delta", "low-32-bits")


@breaks("KV-FLUSH-020")
def flushes_at_once_whatever_the_delay() -> None:
    """`flush_all` with a delay empties the table at once."""
    put_fact("flush.delay", "ignored")


@breaks("KV-FLUSH-019")
def refuses_negative_delays() -> None:
    """`flush_all` with a delay below zero is refused."""
    flush = command_table.TEXT[b"flush_all"]

    def refused(words: list[bytes], rules: Any) -> Any:
        negative = any(word.startswith(b"-") for word in words)
        return commands.Refused(grammar.BAD_FORMAT) if negative else flush.parse(words, rules)

    command_table.TEXT[b"flush_all"] = replace(flush, parse=refused)


@breaks("KV-EXP-001")
def expires_only_what_is_set() -> None:
    """`add`, `replace` and `cas` store an item without its expiry time."""
    handler = dispatch.HANDLERS[commands.Store]

    def run(session: Session, command: commands.Store, now: int) -> OperationGen:
        timeless = command.verb in {"add", "replace", "cas"}
        return handler(session, replace(command, exptime=0) if timeless else command, now)

    dispatch.HANDLERS[commands.Store] = run

    def timeless_too(decide: Any) -> Any:
        return lambda self, row, word, command: decide(self, row, word, (*command[:2], 0, *command[3:]))

    put_decisions(timeless_too, Storage.conditional)


@breaks("KV-EXP-027")
def finds_a_row_in_its_last_second() -> None:
    """A row is found in the second that its expiry names, as with the plugin."""
    put_fact("expiry.second", "found")


@breaks("KV-EXP-028")
def ends_a_row_a_second_late() -> None:
    """A time that counts from now is stored one second later."""
    put(times, "time_of", lambda session, exptime, now, from_now=False: now + exptime + 1 if exptime > 0 else exptime)


@breaks("KV-EXP-022")
def refuses_negative_times() -> None:
    """A negative exptime is refused, and the old item stays, as in 8.0."""
    put_fact("expiry.negative", "error")


@breaks("KV-EXP-023")
def refuses_times_from_2_31() -> None:
    """An exptime of 2^31 and more is refused, as in 8.0."""
    put_fact("expiry.from_2_31", "error")


@breaks("KV-EXP-025")
def keeps_items_without_an_expiry_column() -> None:
    """A row without an expiry column is stored for good whatever its time."""
    put(times, "keeps_no_item", lambda _session, _mapping, _exptime: False)


@breaks("KV-PARSE-027")
def waits_for_two_gibibytes() -> None:
    """A length of 2147483646 or 2147483647 is too large, and as many bytes are thrown away."""
    put_fact("text.longest_length", 2147483647)


@breaks("KV-PARSE-029")
def runs_the_data_of_a_silent_set_too_large() -> None:
    """The data of a line with noreply that is too large runs as commands."""
    put_fact("text.too_large_noreply", "read-as-command")


@breaks("KV-LIMIT-013")
def keeps_the_item_of_a_set_too_large() -> None:
    """A set that is too large leaves the old item."""
    put_fact("text.too_large_set", "keeps-row")


@breaks("KV-LIMIT-015")
def names_no_column_of_a_value_that_does_not_fit() -> None:
    """The reply to a value that is longer than its column names neither column nor width."""
    put(values, "too_large_for", lambda column: values.TOO_LARGE)


@breaks("KV-LIMIT-014")
def keeps_the_row_of_a_set_that_does_not_fit() -> None:
    """A set whose value the column refuses leaves the old row."""
    put(Session, "refused_set_removes", value=False)


@breaks("KV-CAS-013")
def compares_half_a_cas_number() -> None:
    """`cas` compares the low 32 bits of the numbers."""
    unmet = storage.unmet

    def careless(session: Session, verb: str, present: bool, cas: int | None, number: int) -> Any:
        answer = unmet(session, verb, present, cas, number)
        equal = (cas or 0) % (1 << 32) == number % (1 << 32)
        return None if answer is replies.Status.EXISTS and equal else answer

    put(storage, "unmet", careless)


@breaks("KV-ARITH-003")
def counts_below_zero() -> None:
    """`decr` by more than the number wraps."""
    put(
        sums,
        "sum_of",
        lambda session, command, number: (
            (number + (command.delta if command.increment else -command.delta)) % (1 << 64)
        ),
    )


WORDS = re.compile(rb"^(b?gets?) (.+)(?=\r\n)", re.MULTILINE)  # of a get


@breaks("KV-MGET-003")
def answers_a_repeated_key_once() -> None:
    """A key requested twice in one get is answered once."""
    receive = connection.Connection.data_received

    def once(line: re.Match[bytes]) -> bytes:
        return b" ".join([line[1], *dict.fromkeys(line[2].split())])

    put(connection.Connection, "data_received", lambda self, data: receive(self, WORDS.sub(once, data)))


@breaks("KV-CORE-047")
def shows_the_stored_spelling() -> None:
    """VALUE has the key as in the row, not as in the request."""
    item = Session.item

    def stored(self: Session, word: bytes, row: Any) -> replies.Item:
        return item(self, word if self.split(word) else retrieve_key(row), row)

    put(Session, "item", stored)


def retrieve_key(row: Any) -> bytes:
    """Return a row's key as bytes."""
    return row.key.encode() if isinstance(row.key, str) else row.key if isinstance(row.key, bytes) else b"%d" % row.key


@breaks("KV-CONN-001")
def answers_silent_commands() -> None:
    """noreply is ignored."""
    encode = codec.encode
    put(
        connection,
        "encode",
        lambda command, reply, cas: encode(
            replace(command, noreply=False) if getattr(command, "noreply", False) else command, reply, cas
        ),
    )

    def loud(decide: Any) -> Any:
        return lambda self, row, word, command: decide(self, row, word, (*command[:-1], False))

    put_decisions(loud, Storage.set, Storage.conditional, Storage.append, Touching.touch)


@breaks("KV-CONN-027")
def executes_http_requests() -> None:
    """Each line of an HTTP request is answered ERROR, and the commands in its body are executed."""
    put_fact("text.foreign_protocols", "answered")


@breaks("KV-CONN-029")
def closes_on_http_only() -> None:
    """The openings of SSH, RESP and PROXY are answered as unknown commands."""
    put_fact("text.foreign_protocols", "close-on-http")


@breaks("KV-CONN-033")
def closes_on_tls_without_a_word() -> None:
    """A TLS handshake closes the connection without a reply."""
    put(foreign, "farewell", lambda protocol: b"")


@breaks("KV-CONN-030")
def goes_on_behind_quit() -> None:
    """`quit` with a word behind it is an unknown command."""
    put_fact("text.quit_words", "error")


@breaks("KV-CONN-031")
def takes_bad_levels_for_unknown_commands() -> None:
    """`verbosity` with a level that is not a number answers ERROR."""
    put_fact("text.bad_verbosity", "error")


@breaks("KV-CONN-034")
def refuses_cache_memlimit() -> None:
    """`cache_memlimit` is an unknown command."""
    del command_table.TEXT_BEYOND_PLUGIN[b"cache_memlimit"]


@breaks("KV-CONN-035")
def knows_no_refresh_certs() -> None:
    """`refresh_certs` is an unknown command."""
    del command_table.TEXT_BEYOND_PLUGIN[b"refresh_certs"]


@breaks("KV-CONN-041")
def knows_no_shutdown() -> None:
    """`shutdown` is an unknown command."""
    del command_table.TEXT_BEYOND_PLUGIN[b"shutdown"]


@breaks("KV-FLUSH-021")
def refuses_words_behind_the_delay() -> None:
    """`flush_all 0 WORD` is CLIENT_ERROR."""
    parse = text.parse_line

    def strict(line: bytes, rules: Any) -> Any:
        words = line.split()
        refused = words[:1] == [b"flush_all"] and len(words) == 3 and words[-1] != b"noreply"
        return commands.Refused(b"CLIENT_ERROR bad command line format") if refused else parse(line, rules)

    put(text, "parse_line", strict)


@breaks("KV-STATS-037")
def shows_no_rights_in_settings() -> None:
    """`stats settings` has no row flush_enabled."""
    put(stats, "SETTINGS", [name for name in stats.SETTINGS if name != "flush_enabled"])


@breaks("KV-STATS-038")
def counts_no_meta_debug() -> None:
    """cmd_meta stays 0."""
    put(counters.Counters, "cmd_meta", property(lambda self: 0, lambda self, number: None))


@breaks("KV-STATS-016")
def lacks_memory_for_cachedump() -> None:
    """`stats cachedump` answers SERVER_ERROR out of memory."""
    put_fact("stats.cachedump", "out-of-memory")


@breaks("KV-STATS-036")
def counts_by_a_longer_prefix() -> None:
    """`stats detail` counts a key under another prefix of its hash bucket that begins with its own."""
    put_fact("stats.prefixes", "beginning")


@breaks("KV-STATS-019")
def shows_evictions_as_a_number() -> None:
    """`stats settings` has the number of evictions, not whether items are evicted."""
    put(server, "EVICTS", "evictions allowed")


@breaks("KV-CONN-028")
def closes_on_any_line_that_ends_in_http() -> None:
    """A get of a key that begins with `HTTP/` closes the connection."""
    parse = text.parse_line

    def hasty(line: bytes, rules: Any) -> Any:
        return commands.Foreign("HTTP") if foreign.is_http(line.split()) else parse(line, rules)

    put(text, "parse_line", hasty)


@breaks("KV-STATS-015")
def counts_no_other_protocols() -> None:
    """foreign_protocol_conns stays 0."""
    put(client_warnings.ClientWarnings, "foreign_protocol", lambda self, protocol, peer, **where: None)


@breaks("KV-STATS-005")
def counts_hits_twice() -> None:
    """get_hits grows by two for each hit."""
    count_gets = counters.Counters.count_gets

    def twice(self: counters.Counters, hits: int, misses: int) -> None:
        count_gets(self, hits, misses)
        self.get_hits += hits

    add = counters.Counters.add

    def added(self: counters.Counters, names: Any, times: int = 1) -> None:
        add(self, names, times)
        self.get_hits += times * ("get_hits" in names)

    put(counters.Counters, "count_gets", twice)
    put(counters.Counters, "add", added)


@breaks("KV-STATS-020")
def counts_no_large_items() -> None:
    """store_too_large stays 0."""
    put(counters.Counters, "store_too_large", property(lambda self: 0, lambda self, number: None))


@breaks("KV-STATS-021")
def counts_no_expired_rows() -> None:
    """get_expired stays 0."""
    put(Session, "count_expired", lambda self, expiry, now: self.rules.is_expired(expiry, now))
    put(Bound, "count_expired", lambda self, row: self.rules.is_expired(row[EXPIRY], self.now))


@breaks("KV-STATS-022")
def counts_a_full_page() -> None:
    """curr_items is 1,000 for every table."""
    put(sqlite_store, "estimate", lambda connection, sql: 1000)


@breaks("KV-STATS-023")
def counts_no_stored_items() -> None:
    """total_items stays 0."""
    put(counters.Counters, "total_items", property(lambda self: 0, lambda self, number: None))


@breaks("KV-STATS-025")
def shows_connections_without_their_listener() -> None:
    """`stats conns` has no listen_addr."""
    rows = stats_rows.SocketStats.rows
    put(stats_rows.SocketStats, "rows", lambda self: [row for row in rows(self) if not row[0].endswith("listen_addr")])


@breaks("KV-CRAWL-001")
def lists_only_the_first_key() -> None:
    """`lru_crawler metadump all` lists one key."""
    encode = crawler.encode
    put(crawler, "encode", lambda reply: encode(replies.Keys(reply.keys[:1], reply.more)))


@breaks("KV-CRAWL-002")
def lists_keys_as_they_are() -> None:
    """`lru_crawler metadump` does not encode keys."""
    put(crawler, "quote", lambda key, safe: key.decode())


@breaks("KV-CRAWL-003")
def lists_expired_items() -> None:
    """`lru_crawler metadump` lists expired items too."""
    put(crawler_verb, "is_listed", lambda session, row, now: True)


@breaks("KV-CRAWL-004")
def lists_all_keys_for_every_class() -> None:
    """`lru_crawler metadump` of slab classes lists all keys."""
    items = crawler.crawled

    def all_items(word: bytes) -> commands.Crawled:
        found = items(word)
        return commands.Crawled.ALL if found is commands.Crawled.CLASSES else found

    put(crawler, "crawled", all_items)


@breaks("KV-CRAWL-005")
def knows_every_class() -> None:
    """`lru_crawler` takes any number for a slab class."""
    put(crawler, "CLASSES", range(1 << 32))


@breaks("KV-CRAWL-006")
def ignores_further_words_of_lru_crawler() -> None:
    """`lru_crawler` ignores words behind the third."""
    form = command_table.TEXT_BEYOND_PLUGIN[b"lru_crawler"]
    parse = form.parse
    command_table.TEXT_BEYOND_PLUGIN[b"lru_crawler"] = replace(form, parse=lambda words, rules: parse(words[:3], rules))


@breaks("KV-CRAWL-012")
def sleeps_for_an_hour() -> None:
    """`lru_crawler sleep` takes up to an hour."""
    put(crawler, "MAX_SLEEP", 3_600_000_000)


@breaks("KV-CRAWL-008")
def never_disables_the_crawler() -> None:
    """`lru_crawler disable` has no effect."""
    put(Crawler, "enabled", property(lambda self: True, lambda self, on: None))


@breaks("KV-CRAWL-009")
def has_nothing_to_crawl() -> None:
    """`lru_crawler crawl` answers that there are no items."""
    dispatch.ANSWERS[commands.Crawl] = lambda session, command: crawler_verb.NOTHING


CANNOT_PIPELINE = b"ERROR cannot pipeline other commands before metadump"


@breaks("KV-CRAWL-010")
def refuses_pipelined_listings() -> None:
    """`lru_crawler metadump` behind pipelined commands is refused, as by memcached."""
    receive = connection.Connection.data_received
    form = command_table.TEXT_BEYOND_PLUGIN[b"lru_crawler"]

    def strict(words: list[bytes], rules: Any) -> Any:
        pipelined = words[1:2] == [b"pipelined"]
        return commands.Refused(CANNOT_PIPELINE) if pipelined else form.parse(words, rules)

    put(
        connection.Connection,
        "data_received",
        lambda self, data: receive(self, data.replace(b"\nlru_crawler metadump", b"\nlru_crawler pipelined")),
    )
    command_table.TEXT_BEYOND_PLUGIN[b"lru_crawler"] = replace(form, parse=strict)


@breaks("KV-RANGE-001")
def ignores_the_second_bound() -> None:
    """A range of two bounds has the first one only."""
    parse = ranges.parse

    def half(key: bytes) -> Any:
        found = parse(key)
        if found is None or None in (found.low, found.high):
            return found
        return ranges.Range(found.low, None) if key.startswith(b"@>") else ranges.Range(None, found.high)

    put(retrieve, "parse", half)


@breaks("KV-EXP-029")
def removes_expired_rows_that_it_finds() -> None:
    """A command other than `get` that finds an expired row removes it."""

    def cleaning(decide: Any) -> Any:
        def decided(self: Any, row: Any, word: bytes, command: Any) -> Any:
            reply, new, parameters = decide(self, row, word, command)
            gone = new is None and row[HIT] and 0 < (row[EXPIRY] or 0) <= time.time()
            return reply, ABSENT if gone else new, None if gone else parameters

        return decided

    put_decisions(cleaning, Storage.conditional, Storage.append, Touching.touch, Deletion.delete, Arithmetic.add)


@breaks("KV-RANGE-035")
def reads_malformed_bounds_as_0() -> None:
    """A bound of a range that is not a number is 0 for an integer key column."""
    cell = ranges.end_cell

    def lenient(session: Session, mapping: Mapping, bound: Any) -> Any:
        try:
            return cell(session, mapping, bound)
        except values.RefusedError:
            return 0

    put(ranges, "end_cell", lenient)


@breaks("KV-RANGE-036")
def takes_a_range_of_bget_for_a_key() -> None:
    """`bget` of a range looks for a key of that name."""
    bget = command_table.TEXT[b"bget"]

    def without_ranges(words: list[bytes], rules: Any) -> Any:
        return bget.parse([word.replace(b"@>", b"@?").replace(b"@<", b"@?") for word in words], rules)

    command_table.TEXT[b"bget"] = replace(bget, parse=without_ranges)


@breaks("KV-STATS-027")
def shows_the_version_first() -> None:
    """The rows of `stats` begin with the version."""
    put(stats, "GENERAL", ["version", *(name for name in stats.GENERAL if name != "version")])


@breaks("KV-STATS-028")
def shows_a_class_of_items() -> None:
    """`stats items` has a row."""
    stats_verb.FIXED[b"items"] = [("items:1:number", "0")]


@breaks("KV-STATS-029")
def has_no_stats_slabs() -> None:
    """`stats slabs` is an unknown command."""
    del stats_verb.FIXED[b"slabs"]
