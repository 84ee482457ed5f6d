"""`@@mapping.key`: which table a word reaches, what it answers, what stays bound.

Each connection begins bound to {m1}; {m1b} maps the same table, {m2} another one, {q} a third one (one letter).
What is not a word of a mapping: `test_mapping_words.py`.
"""

from __future__ import annotations

from kvref_conformance.case import case, send, sql
from kvref_conformance.cases.phrases import EVERYWHERE, hit, map_table, miss, store, unmap

TO_M2 = send("get @@{m2}\r\n", "VALUE @@{m2} 0 {#w2}\r\n{w2}\r\nEND\r\n")

SWITCHES = (
    case(
        "get-word",
        "KV-MAP-001",
        *EVERYWHERE,
        hit("@@{m2}.{k}", "2"),
        hit("@@{q}.{k}", "3"),
        hit("@@{m1}.{k}", "1"),
    ),
    case("get-word-stays", "KV-MAP-002", *EVERYWHERE, hit("@@{m2}.{k}", "2"), hit("{k}", "2"), hit("{k}", "2")),
    case(
        "switch-word-answer",
        "KV-MAP-003 KV-MAP-050",
        TO_M2,
        send("gets @@{m1}\r\n", "VALUE @@{m1} 0 {#w1} 0\r\n{w1}\r\nEND\r\n"),
    ),
    case(
        "switch-word-stays",
        "KV-MAP-004",
        *EVERYWHERE,
        send("get @@{m2}\r\n", "VALUE @@{m2} 0 <number>\r\n<text>\r\nEND\r\n"),
        hit("{k}", "2"),
    ),
    case(
        "switch-word-with-delimiter",
        "KV-MAP-005",
        *EVERYWHERE,
        send("get @@{m2}.\r\n", "VALUE @@{m2}. 0 <number>\r\n<text>\r\nEND\r\n"),
        hit("{k}", "2"),
    ),
    case("get-word-missing-key", "KV-MAP-006", *EVERYWHERE, miss("@@{m2}.{k2}"), hit("{k}", "2")),
    case("set-word", "KV-MAP-007", *EVERYWHERE, store("@@{m2}.{k}", "y"), hit("{k}", "y"), hit("@@{m1}.{k}", "1")),
    *(
        case(
            f"{verb}-word",
            "KV-MAP-008",
            *EVERYWHERE,
            send(f"{verb} @@{{m2}}.{key} 0 0 1\r\n+\r\n", "STORED\r\n"),
            send(f"get {key}\r\n", f"VALUE {key} 0 {len(value)}\r\n{value}\r\nEND\r\n"),
        )
        for verb, key, value in (
            ("add", "{k2}", "+"),
            ("replace", "{k}", "+"),
            ("append", "{k}", "2+"),
            ("prepend", "{k}", "+2"),
        )
    ),
    case(
        "cas-word",
        "KV-MAP-008",
        *EVERYWHERE,
        send("gets @@{m2}.{k}\r\n", "VALUE @@{m2}.{k} 0 1 <cas a>\r\n2\r\nEND\r\n"),
        hit("@@{m1}.{k}", "1"),
        send("cas @@{m2}.{k} 0 0 1 {a}\r\n+\r\n", "STORED\r\n"),
        hit("{k}", "+"),
    ),
    *(
        case(
            f"{verb}-word-refused",
            "KV-MAP-009",
            *EVERYWHERE,
            send(f"{verb} @@{{m2}}.{key} 0 0 1{number}\r\n+\r\n", answer),
            hit("{k}", "2"),
        )
        for verb, key, number, answer in (
            ("add", "{k}", "", "NOT_STORED\r\n"),
            ("replace", "{k2}", "", "NOT_STORED\r\n"),
            ("append", "{k2}", "", "NOT_STORED\r\n"),
            ("prepend", "{k2}", "", "NOT_STORED\r\n"),
            ("cas", "{k}", " 18446744073709551615", "EXISTS\r\n"),
        )
    ),
    case(
        "cas-word-missing",
        "KV-MAP-009",
        *EVERYWHERE,
        send("cas @@{m2}.{k2} 0 0 1 1\r\n+\r\n", "NOT_FOUND\r\n"),
        hit("{k}", "2"),
    ),
    case(
        "delete-word",
        "KV-MAP-012",
        *EVERYWHERE,
        send("delete @@{m2}.{k}\r\n", "DELETED\r\n"),
        miss("{k}"),
        hit("@@{m1}.{k}", "1"),
    ),
    *(
        case(
            f"{verb}-word",
            "KV-MAP-013",
            *EVERYWHERE,
            send(f"{verb} @@{{m2}}.{{k}} 2\r\n", f"{result}\r\n"),
            hit("{k}", result),
            hit("@@{m1}.{k}", "1"),
        )
        for verb, result in (("incr", "4"), ("decr", "0"))
    ),
    case(
        "gets-word",
        "KV-MAP-031",
        *EVERYWHERE,
        send("gets @@{m2}.{k}\r\n", "VALUE @@{m2}.{k} 0 1 <cas>\r\n2\r\nEND\r\n"),
    ),
    case(
        "back-and-forth",
        "KV-MAP-036",
        *EVERYWHERE,
        *(
            step
            for _ in range(3)
            for step in (hit("@@{m2}.{k}", "2"), hit("{k}", "2"), hit("@@{m1}.{k}", "1"), hit("{k}", "1"))
        ),
    ),
    case(
        "two-mappings-of-one-table",
        "KV-MAP-027",
        store("@@{m1}.{k}", "1"),
        hit("@@{m1b}.{k}", "1"),
        store("{k}", "x"),
        hit("@@{m1}.{k}", "x"),
    ),
)

CONNECTIONS = (
    case(
        "a-connections-own",
        "KV-MAP-028",
        *EVERYWHERE,
        send("get {k}\r\n", "VALUE {k} 0 1\r\n1\r\nEND\r\n", on="b"),
        hit("@@{m2}.{k}", "2"),
        send("get {k}\r\n", "VALUE {k} 0 1\r\n1\r\nEND\r\n", on="b"),
        send("get @@{q}.{k}\r\n", "VALUE @@{q}.{k} 0 1\r\n3\r\nEND\r\n", on="b"),
        hit("{k}", "2"),
    ),
    case(
        "pipelined-switches",
        "KV-MAP-029",
        *EVERYWHERE,
        send(
            "get @@{m2}.{k}\r\nget {k}\r\nget @@no-such.{k}\r\nget {k}\r\nset @@{q}.{k} 0 0 1\r\nx\r\nget {k}\r\n",
            "VALUE @@{m2}.{k} 0 1\r\n2\r\nEND\r\nVALUE {k} 0 1\r\n2\r\nEND\r\nEND\r\nVALUE {k} 0 1\r\n2\r\nEND\r\n"
            "STORED\r\nVALUE {k} 0 1\r\nx\r\nEND\r\n",
        ),
    ),
    case(
        "split-word",
        "KV-MAP-001",
        *EVERYWHERE,
        send(("get @@{m2}", ".{k}\r\n"), "VALUE @@{m2}.{k} 0 1\r\n2\r\nEND\r\n"),
    ),
    case(
        "new-row",
        "KV-MAP-034",
        *EVERYWHERE,
        miss("@@{k2}.{k}"),
        map_table("{k2}", "{t2}"),
        hit("@@{k2}.{k}", "2"),
        hit("{k}", "2"),
        unmap("{k2}"),
    ),
    case(
        "bad-row",
        "KV-MAP-035 KV-MAP-051",
        *EVERYWHERE,
        map_table("{k2}", "kvc_missing"),
        miss("@@{k2}.{k}"),
        send("bind {k2}\r\n", "NOT_FOUND\r\n"),
        hit("{k}", "1"),
        hit("@@{m2}.{k}", "2"),
        unmap("{k2}"),
    ),
    case(
        "store-without-a-key",
        "KV-MAP-043",
        *EVERYWHERE,
        send("set @@{m2} 0 0 7\r\nkeyless\r\n", "NOT_STORED\r\n"),
        sql("SELECT COUNT(*) FROM {t2} WHERE c2 = 'keyless' OR c1 = '' OR c1 = '@@{m2}'", (0,)),
        hit("@@{m2}.{k}", "2"),
    ),
    case(
        "silent-store-switches",
        "KV-MAP-044",
        *EVERYWHERE,
        send("set @@{m2}.{k2} 0 0 1 noreply\r\ny\r\n", ""),
        hit("{k2}", "y"),
        hit("{k}", "2"),
    ),
    case("stats-of-a-word", "KV-MAP-045", *EVERYWHERE, send("stats @@{m2}\r\n", "ERROR\r\n"), hit("{k}", "1")),
    case(
        "word-with-a-key-as-long-as-its-column",
        "KV-MAP-046",
        send("set @@{m2}.{k:32} 0 0 1\r\nx\r\n", "STORED\r\n"),
        send("get @@{m2}.{k:32}\r\n", "VALUE @@{m2}.{k:32} 0 1\r\nx\r\nEND\r\n"),
        send("get {k:31}\r\n", "END\r\n"),
    ),
)

NOT_STICKY = {"sticky_mapping": 0}
FOR_ONE_COMMAND = (
    *(
        case(
            f"word-for-one-command-{name}",
            "KV-MAP-052",
            *EVERYWHERE,
            step,
            hit("{k}", "1"),
            send("bind {m2}\r\n", "SUCCEED\r\n"),
            hit("@@{q}.{k}", "3"),
            hit("{k}", "2"),
            settings=NOT_STICKY,
        )
        for name, step in (
            ("get", send("get @@{m2}.{k} {k}\r\n", "VALUE @@{m2}.{k} 0 1\r\n2\r\nVALUE {k} 0 1\r\n2\r\nEND\r\n")),
            ("miss", miss("@@{m2}.{k2}")),
            ("unknown", miss("@@no-such.{k}")),
            ("set", store("@@{m2}.{k}", "2")),
            ("add", send("add @@{m2}.{k} 0 0 1\r\nx\r\n", "NOT_STORED\r\n")),
            ("incr", send("incr @@{m2}.{k} 0\r\n", "2\r\n")),
            ("delete", send("delete @@{m2}.{k2}\r\n", "NOT_FOUND\r\n")),
            ("range", send("get @@{m2}.@>{k}zz\r\n", "END\r\n")),
        )
    ),
    case(
        "switches-for-good",
        "KV-MAP-053",
        *EVERYWHERE,
        TO_M2,
        hit("@@{q}.{k}", "3"),
        hit("{k}", "2"),
        send("bind {q}\r\n", "SUCCEED\r\n"),
        hit("@@{m1}.{k}", "1"),
        hit("{k}", "3"),
        settings=NOT_STICKY,
    ),
    case(
        "batch-for-one-command",
        "KV-MAP-054",
        store("{k}", "1"),
        sql("SELECT count(*) FROM {t1} WHERE c1 = '{k}'", (0,)),
        store("@@{m2}.{k}", "2"),
        sql("SELECT c2 FROM {t1} WHERE c1 = '{k}'", ("1",)),
        sql("SELECT c2 FROM {t2} WHERE c1 = '{k}'", ("2",)),
        settings={"daemon_memcached_w_batch_size": 100, **NOT_STICKY},
    ),
)
CASES = (*SWITCHES, *CONNECTIONS, *FOR_ONE_COMMAND)
