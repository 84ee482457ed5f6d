"""`stats`: which names, in which order, and what the counters count."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Final

from kvref_conformance.case import case, send
from kvref_conformance.cases.phrases import miss, store, try_store

if TYPE_CHECKING:
    from kvref_conformance.steps import Send

NAMES = (
    "pid uptime time version libevent pointer_size rusage_user rusage_system daemon_connections curr_connections "
    "total_connections connection_structures cmd_get cmd_set cmd_flush auth_cmds auth_errors get_hits get_misses "
    "delete_misses delete_hits incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval bytes_read "
    "bytes_written limit_maxbytes accepting_conns listen_disabled_num rejected_conns threads conn_yields evictions "
    "curr_items total_items bytes reclaimed engine_maxbytes"
).split()
# Behind which of them memcached 1.6 has others that mean something here.
NEWER = {
    "daemon_connections": ["max_connections"],
    "total_connections": ["rejected_connections"],
    "cmd_flush": ["cmd_touch", "cmd_meta"],
    "get_misses": ["get_expired", "get_flushed"],
    "cas_badval": ["touch_hits", "touch_misses", "store_too_large", "store_no_memory"],
    "listen_disabled_num": ["time_in_listen_disabled_us"],
    "rejected_conns": ["foreign_protocol_conns"],
}
MORE_NAMES = [each for name in NAMES for each in (name, *NEWER.get(name, ()))]
# In any order.
WHOLE = ("PREFIX egb get 1 hit 0 set 0 del 0\r\n", "PREFIX e get 2 hit 0 set 0 del 1\r\n")
RESET = send("stats reset\r\n", "RESET\r\n")
USAGE = "CLIENT_ERROR usage: stats detail on|off|dump\r\n"


def setting(name: str, *values: int | str) -> Send:
    """Want `stats settings` with one of these values of a row, whatever rows precede and follow it."""
    return send("stats settings\r\n", tuple(f"<stats>STAT {name} {value}\r\n<stats>END\r\n" for value in values))


def row(name: str) -> str:
    """Return the template of a row of `stats` with any value."""
    return f"STAT {name} <text>\r\n"


def one_stat(name: str, value: int | str) -> Send:
    """Want `stats` with this value among its rows, whatever rows precede and follow it."""
    return send("stats\r\n", f"<stats>STAT {name} {value}\r\n<stats>END\r\n")


def each_stat(**values: int | str) -> tuple[Send, ...]:
    """Want these values among the rows of `stats`, in any order."""
    return tuple(one_stat(name, value) for name, value in values.items())


# The rows of the connection that sends the command, in any order.
THIS_CONNECTION: Final = (
    "STAT <number a>:state conn_parse_cmd",
    *(f"STAT {{a}}:{each}" for each in ("addr <text>", "listen_addr <text>", "secs_since_last_cmd <number>")),
)

CASES = (
    case("stats-names", "KV-STATS-001", send("stats\r\n", f"{''.join(map(row, NAMES))}END\r\n")),
    case(
        "stats-names-more",
        "KV-STATS-027",
        send("stats\r\n", f"<stats>{'<stats>'.join(map(row, MORE_NAMES))}<stats>END\r\n"),
    ),
    case("stats-without-rows", "KV-STATS-002", store("{k}", "x"), *each_stat(curr_items=0, total_items=0, bytes=0)),
    case(
        "stats-reset",
        "KV-STATS-003",
        send("get {k}\r\n", "END\r\n"),
        RESET,
        *each_stat(cmd_get=0, cmd_set=0, get_hits=0, get_misses=0, delete_misses=0, incr_hits=0, cas_misses=0),
    ),
    case("stats-reset-of-connections", "KV-STATS-004", RESET, one_stat("total_connections", 0)),
    case(
        "stats-of-get",
        "KV-STATS-005",
        store("{k}", "x"),
        RESET,
        send("get {k} {k2} {k}\r\n", "VALUE {k} 0 1\r\nx\r\nVALUE {k} 0 1\r\nx\r\nEND\r\n"),
        *each_stat(cmd_get=3, get_hits=2, get_misses=1),
    ),
    case(
        "stats-of-set",
        "KV-STATS-006",
        RESET,
        store("{k}", "x"),
        send("cas {k2} 0 0 1 1\r\ny\r\n", "NOT_FOUND\r\n"),
        *each_stat(cmd_set=1, cas_misses=1),
    ),
    case(
        "stats-of-delete",
        "KV-STATS-007",
        store("{k}", "x"),
        RESET,
        send("delete {k}\r\n", "DELETED\r\n"),
        send("delete {k}\r\n", "NOT_FOUND\r\n"),
        *each_stat(delete_hits=1, delete_misses=1),
    ),
    case(
        "stats-of-a-missing-incr",
        "KV-STATS-008",
        RESET,
        send("incr {k} 1\r\n", ("<number>\r\n", "NOT_FOUND\r\n")),
        *each_stat(incr_hits=1, incr_misses=0),
    ),
    case("stats-libevent", "KV-STATS-009", one_stat("libevent", "5.6.14")),
    case(
        "stats-detail",
        "KV-STATS-010 KV-STATS-030 KV-STATS-031",
        send("stats detail on\r\n", "OK\r\n"),
        send("stats detail dump\r\n", "<stats>END\r\n"),
        send("stats detail off\r\n", "OK\r\n"),
        send("stats detail other\r\n", USAGE),
    ),
    *(
        case(
            f"stats-detail-{id_}",
            requirement,
            RESET,
            send("stats detail on\r\n", "OK\r\n"),
            # The two prefixes are in one bucket of the plugin's hash table.
            *(miss(key) for key in ("egb:1", "e:1", "e:2")),
            send("delete e:3\r\n", "NOT_FOUND\r\n"),
            send("stats detail dump\r\n", tuple(f"{lines}END\r\n" for lines in dumps)),
            send("stats detail off\r\n", "OK\r\n"),
        )
        for id_, requirement, dumps in (
            ("of-one-bucket", "KV-STATS-035", ["PREFIX egb get 3 hit 0 set 0 del 1\r\n"]),
            ("whole-prefixes", "KV-STATS-036", map("".join, permutations(WHOLE))),
        )
    ),
    case("stats-items", "KV-STATS-028", send("stats items\r\n", "END\r\n")),
    case("stats-slabs", "KV-STATS-029", send("stats slabs\r\n", "<stats>END\r\n")),
    case("stats-sizes", "KV-STATS-011", send("stats sizes\r\n", "END\r\n")),
    *(
        case(name, "KV-STATS-041", send(f"{line}\r\n", "STAT scrubber:status stopped\r\nEND\r\n"))
        for name, line in (("stats-scrub", "stats scrub"), ("stats-scrub-words", "stats scrub x noreply"))
    ),
    case("stats-vbucket", "KV-STATS-012", send("stats vbucket\r\n", "STAT vb_0 active\r\nEND\r\n")),
    *(
        case(f"stats-{word}", "KV-STATS-013", send(f"stats {word}\r\n", "ERROR\r\n"))
        for word in ("foo", "malloc", "noreply")
    ),
    case("stats-conns", "KV-STATS-014", send("stats conns\r\n", "ERROR\r\n")),
    *(
        case(
            f"stats-{words.replace(' ', '-')}-shows-it",
            "KV-STATS-025",
            *(send(f"stats {words}\r\n", f"<stats>{each}\r\n<stats>END\r\n") for each in THIS_CONNECTION),
        )
        for words in ("conns", "conns x")
    ),
    case("stats-connsx", "KV-STATS-013", send("stats connsx\r\n", "ERROR\r\n")),
    case(
        "stats-settings",
        "KV-STATS-019",
        *(
            setting(name, *values)
            for name, values in (
                ("verbosity", ("<number>",)),
                ("evictions", ("on", "off")),
                ("domain_socket", ("<text>",)),
            )
        ),
    ),
    case(
        "stats-settings-of-listeners",
        "KV-STATS-037",
        *(setting(name, "<number>") for name in ("tcpport",)),
        *(setting(name, "<text>") for name in ("inter", "auth_enabled_ascii")),
        *(
            setting(name, "yes", "no")
            for name in (
                "shutdown_command",
                "maxconns_fast",
                "lru_crawler",
                "flush_enabled",
                "dump_enabled",
                "track_sizes",
            )
        ),
    ),
    case(
        "stats-settings-detail",
        "KV-STATS-037",
        *(
            step
            for word, shown in (("on", "yes"), ("off", "no"))
            for step in (send(f"stats detail {word}\r\n", "OK\r\n"), setting("detail_enabled", shown))
        ),
    ),
    case(
        "stats-cmd-meta",
        "KV-STATS-038",
        RESET,
        send("me {k}\r\nmn\r\nmg {k}\r\nmd {k}\r\n", "EN\r\nMN\r\nEN\r\nNF\r\n"),
        one_stat("cmd_meta", 1),
    ),
    case(
        "stats-settings-verbosity",
        "KV-STATS-026",
        *(
            step
            for level, shown in ((1, 1), (99, 2), (0, 0))
            for step in (
                send(f"verbosity {level}\r\n", "OK\r\n"),
                setting("verbosity", shown),
            )
        ),
        send("verbosity 1 noreply\r\n", ""),
        setting("verbosity", 1),
        send("verbosity 0\r\n", "OK\r\n"),
    ),
    case(
        "stats-cachedump",
        "KV-STATS-016 KV-STATS-032",
        send("stats cachedump 63 1\r\nstats cachedump 63 0 3\r\n", "END\r\n" * 2),
        send("stats cachedump 64 0\r\n", "CLIENT_ERROR Illegal slab id\r\n"),
    ),
    case(
        "stats-cachedump-without-memory",
        "KV-STATS-017 KV-STATS-033",
        send("stats cachedump 1 0\r\nstats cachedump 199 0\r\n", "SERVER_ERROR out of memory writing stats\r\n" * 2),
        send("stats cachedump 200 0\r\n", "CLIENT_ERROR Illegal slab id\r\n"),
    ),
    case(
        "stats-cachedump-malformed",
        "KV-STATS-018 KV-STATS-034",
        send("stats cachedump\r\nstats cachedump 1\r\n", "CLIENT_ERROR bad command line\r\n" * 2),
        send(
            "stats cachedump x 1\r\nstats cachedump 1 x\r\nstats cachedump -1 0\r\n",
            "CLIENT_ERROR bad command line format\r\n" * 3,
        ),
    ),
    case(
        "stats-of-too-large",
        "KV-STATS-020",
        RESET,
        send("set {k} 0 0 2097152\r\n{v~2097152}\r\n", "SERVER_ERROR object too large for cache\r\n", patience=15.0),
        one_stat("store_too_large", 1),
    ),
    case(
        "stats-of-expired",
        "KV-STATS-021",
        # One packet: what memcached does in the background removes an expired item, which no look-up finds then.
        *(
            step
            for line, answer in (("get {k}", "END"), ("incr {k} 1", "NOT_FOUND"), ("delete {k}", "NOT_FOUND"))
            for step in (
                RESET,
                send(f"set {{k}} 0 -1 1\r\nx\r\n{line}\r\nget {{k2}}\r\n", f"STORED\r\n{answer}\r\nEND\r\n"),
                one_stat("get_expired", 1),
            )
        ),
    ),
    case(
        "stats-of-rows",
        "KV-STATS-022",
        send("flush_all\r\n", "OK\r\n", patience=15.0),
        one_stat("curr_items", 0),
        store("{k}", "x"),
        store("{k2}", "x"),
        store("{k2}", "y"),
        one_stat("curr_items", 2),
        send("delete {k}\r\n", "DELETED\r\n"),
        one_stat("curr_items", 1),
    ),
    case(
        "stats-of-stored",
        "KV-STATS-023",
        RESET,
        store("{k}", "1"),
        store("{k}", "2"),
        store("{k}", "2", "append"),
        try_store("{k}", "3", "NOT_STORED\r\n", "add"),
        send("incr {k} 1\r\n", "23\r\n"),
        one_stat("total_items", 3),
    ),
    case(
        "stats-of-flushed",
        "KV-STATS-024",
        store("{k}", "x"),
        RESET,
        send("flush_all\r\n", "OK\r\n", patience=15.0),
        miss("{k}"),
        one_stat("get_flushed", 0),
    ),
    case(
        "stats-of-other-protocols",
        "KV-STATS-015",
        RESET,
        send("GET / HTTP/1.1\r\n", "", on="b", closes=True),
        send("foo\r\n", "ERROR\r\n"),
        one_stat("foreign_protocol_conns", 1),
    ),
)
