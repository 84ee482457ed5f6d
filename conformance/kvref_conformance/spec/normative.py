"""The normative chapters that are data, as Markdown: one text a chapter, with headings from the second level on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kvref import profiles as known_profiles
from kvref.specification import conformance_levels, normative, requirements
from kvref.specification.normative import OTHERS
from kvref_conformance.spec import grammar, replies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kvref.specification.requirements import Chapter


@dataclass(frozen=True, slots=True)
class NormativeChapter:
    """One chapter.

    Args:
        name: of its page.
        title: heading.
        about: its subject in one sentence.
        body: Markdown.
    """

    name: str
    title: str
    about: str
    body: str


def chapters(profile: str = "") -> tuple[NormativeChapter, ...]:
    """Return the chapters in the order of the specification.

    Args:
        profile: name of the only one whose rules they have; empty: of all.
    """
    mapped = not profile or known_profiles.load(profile).flag("mapping.supported")
    return tuple(
        NormativeChapter(name, title, about, "\n\n".join(body(profile)) + "\n")
        for name, title, about, body in _CHAPTERS
        if (mapped or name not in _OF_MAPPINGS) and (name != "lifecycles" or profile in ("", "kvref"))
    )


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown; bars in cells are escaped."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def code(text: str) -> str:
    """Return a text as code in Markdown, also one with backquotes."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _chapter(name: str, profile: str) -> dict[str, Any]:
    """Return a chapter for a profile, or for all."""
    return normative.of_profile(name, profile) if profile else normative.table(name)


def _text(value: str | dict[str, str]) -> str:
    """Return a text; of one that differs between profiles all, each with its profile."""
    if isinstance(value, str):
        return value.strip()
    return "; ".join(
        f"{'other profiles' if name == OTHERS else code(name)}: {text.strip()}" for name, text in value.items()
    )


def _profiles(row: dict[str, Any], profile: str) -> tuple[str, ...]:
    """Return the cell of a row's profiles; no cell in an edition, which has only rows of its profile."""
    return () if profile else (", ".join(map(code, row["profiles"])) if "profiles" in row else "all",)


def _head(profile: str) -> tuple[str, ...]:
    return () if profile else ("profiles",)


def _grammar(profile: str) -> Iterator[str]:
    chapter = grammar.of_profile(profile) if profile else {"abnf": normative.grammar(), **normative.table("grammar")}
    yield _text(chapter["text"]["lines"])
    if "choices" in chapter["text"]:
        yield _text(chapter["text"]["choices"])
    yield f"```text\n{chapter['abnf'].strip()}\n```"
    if not profile:
        yield "## Start rules"
        yield table(
            ("profile", "rule of a line"), [(code(name), code(rule)) for name, rule in chapter["start"].items()]
        )
    yield "## Ranges of numbers"
    yield chapter["text"]["ranges"].strip()
    head = ("rule", "ranges") if profile else ("rule", "profiles", "ranges")
    yield table(head, _ranges(chapter["ranges"]))
    yield "## Conditions"
    yield "\n".join(f"* {text}" for text in chapter["conditions"].values())


def _ranges(ranges: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for rule, rows in ranges.items():
        for profile, each in rows.items() if isinstance(rows, dict) else [("", rows)]:
            shown = "; ".join(_range(*row) for row in each)
            yield (code(rule), *(["all" if profile == OTHERS else code(profile)] if profile else []), shown)


def _range(low: int, high: int, low_bits_from: int | None = None, low_bits_to: int = 0) -> str:
    bits = "" if low_bits_from is None else f" with low 32 bits from {low_bits_from} to {low_bits_to}"
    return f"{low} to {high}{bits}"


def _binary(profile: str) -> Iterator[str]:
    chapter = _chapter("binary", profile)
    yield chapter["text"]["header"]
    yield "## Header"
    yield table(
        ("offset", "octets", "request", "response"),
        [(str(row["offset"]), str(row["length"]), row["request"], row["response"]) for row in chapter["header"]],
    )
    yield "## Statuses"
    yield chapter["text"]["statuses"]
    yield table(
        ("status", "text"),
        [
            (f"0x{row['number']:02x}", _status_text(row, profile) if row["text"] not in ("", "*") else "")
            for row in chapter["status"]
        ],
    )
    yield "## Opcodes"
    yield chapter["text"]["opcodes"]
    head = ("opcode", "name", "extras (octets)", "key", "value", "quiet", *_head(profile))
    yield table(head, [(*_opcode(row), *_profiles(row, profile)) for row in chapter["opcode"]])


def _status_text(row: dict[str, Any], profile: str) -> str:
    if profile:
        return code(row["text"] + "." * bool(row.get("full_stop")))
    return code(row["text"]) + ("; in `memcached` followed by a full stop" if row.get("full_stop") else "")


def _opcode(row: dict[str, Any]) -> tuple[str, ...]:
    quiet = "yes" if row["quiet"] else "no"
    return f"0x{row['number']:02x}", row["name"], row["extras"], row["key"], row["value"], quiet


def _data_model(profile: str) -> Iterator[str]:
    chapter = _chapter("data_model", profile)
    text = chapter["text"]
    yield text["tables"]
    for script in chapter["scripts"]:
        yield f"## {script['title']}"
        yield f"```sql\n{''.join(map(normative.script, script['files'])).strip()}\n```"
    yield "## Names"
    yield text["names"]
    yield table(
        ("what", "MySQL, MariaDB", "SQLite"), [(row["what"], row["mysql"], row["sqlite"]) for row in chapter["names"]]
    )
    yield "## Numbers"
    yield text["numbers"]
    yield table(("type", "signed", "UNSIGNED"), [_integer(row) for row in chapter["numbers"]])
    yield "## Texts"
    yield text["texts"]
    yield table(("type", "width"), [(row["type"], row["width"]) for row in chapter["texts"]])
    yield "## Collations"
    yield text["collations"]
    yield "## SQLite files"
    yield text["files"]
    yield "## Reload"
    yield text["reload"]


def _integer(row: dict[str, Any]) -> tuple[str, ...]:
    return row["type"], *(f"{row[sign][0]} to {row[sign][1]}" for sign in ("signed", "unsigned"))


def _defaults(profile: str) -> Iterator[str]:
    chapter = _chapter("defaults", profile)
    yield "## Options"
    yield chapter["text"]["options"]
    yield table(("option", "default"), [(code(name), code(value)) for name, value in chapter["options"].items()])
    yield "## Settings"
    yield chapter["text"]["settings"]
    yield table(("setting", "default"), [(code(name), _number(value)) for name, value in chapter["settings"].items()])
    if chapter.get("own"):
        yield "## Other settings"
        yield _text(chapter["text"]["own"])
        own = [(name, row.get("kvref", row)) for name, row in chapter["own"].items()]
        yield table(
            ("setting", "default", "meaning"), [(code(name), str(row["default"]), row["means"]) for name, row in own]
        )
    yield "## Rows"
    yield chapter["text"]["rows"]
    yield table(("table", "row"), [(code(name), ", ".join(map(str, row))) for name, row in chapter["rows"].items()])


def _number(value: int | dict[str, int]) -> str:
    return _text({name: str(each) for name, each in value.items()}) if isinstance(value, dict) else str(value)


def _states(profile: str) -> Iterator[str]:
    chapter = _chapter("states", profile)
    yield chapter["text"]["about"].strip()
    for machine in chapter["machine"]:
        yield f"## {machine['title']}"
        yield f"{machine['about']} The first state is *{machine['start']}*."
        head = ("state", "event", "next state", "effect", *_head(profile))
        yield table(
            head,
            [
                (row["from"], row["event"], row["to"], row["effect"], *_profiles(row, profile))
                for row in machine["transitions"]
            ],
        )
        yield f"```mermaid\n{diagram(machine)}\n```"


def diagram(machine: dict[str, Any]) -> str:
    """Return the diagram of a state machine in Mermaid.

    Args:
        machine: a row of `states.toml`.
    """
    lines = [f"    [*] --> {machine['start']}"]
    for row in machine["transitions"]:
        event = row["event"].replace(":", ",").replace(";", ",").replace("`", "")
        lines.append(f"    {row['from']} --> {row['to']}: {event}")
    return "\n".join(["stateDiagram-v2", *lines])


def _has_rules(chapter: Chapter, profile: str) -> bool:
    """Return whether an edition of the profile has a page of this chapter; without a profile every chapter has one."""
    return not profile or any(each.applies_to(profile) for each in chapter.requirements)


def _front_matter(profile: str) -> Iterator[str]:
    chapter = _chapter("front_matter", profile)
    yield f"## {chapter['scope']['title']}"
    yield _text(chapter["scope"]["text"])
    yield f"## {chapter['terms']['title']}"
    yield chapter["terms"]["about"]
    yield table(("term", "meaning"), [(row["name"], _text(row["means"])) for row in chapter["terms"]["term"]])
    yield f"## {chapter['conformance']['title']}"
    yield chapter["conformance"]["text"].strip()
    levels = conformance_levels.load().values()
    shown = {each.name for each in requirements.chapters() if _has_rules(each, profile)}
    yield table(
        ("level", "builds on", "chapters"),
        [
            (
                code(each.name),
                ", ".join(map(code, each.builds_on)),
                ", ".join(filter(shown.__contains__, each.chapters)),
            )
            for each in levels
        ],
    )
    yield f"## {chapter['references']['title']}"
    references = chapter["references"]
    mapped = references["mapped"] if profile else references["mapped"][OTHERS]
    yield "\n".join(f"* {each}" for each in (*references["items"], *mapped))
    yield f"## {chapter['notation']['title']}"
    yield chapter["notation"]["text"].strip()
    yield table(("sign", "meaning"), [(row["sign"], row["means"]) for row in chapter["notation"]["part"]])
    yield f"## {chapter['security']['title']}"
    yield chapter["security"]["text"].strip()
    if mapped := _text(chapter["security"]["mapped"]):
        yield mapped
    yield f"## {chapter['changes']['title']}"
    yield chapter["changes"]["text"]
    yield "\n".join(f"* {each}" for each in chapter["changes"]["items"])


def _lifecycles(profile: str) -> Iterator[str]:
    chapter = _chapter("lifecycles", profile)
    yield chapter["text"]["about"]
    for each in chapter["lifecycle"]:
        yield f"## {each['title']}"
        yield each["text"].strip()
        edges = [f"    {_state(old)} --> {_state(new)}: {event}" for old, new, event in each["edges"]]
        yield "\n".join(["```mermaid", "stateDiagram-v2", *edges, "```"])


def _state(name: str) -> str:
    return name.replace(" ", "_")


def _statistics(profile: str) -> Iterator[str]:
    rows = _chapter("statistics", profile)
    yield "The reply to `stats` has these rows in this order" + (
        "." if profile else "; the rows of a profile are those that name it."
    )
    yield table(
        ("row", "meaning", *_head(profile)),
        [(code(name), _text(row["means"]), *_profiles(row, profile)) for name, row in rows.items()],
    )


def _replies(profile: str) -> Iterator[str]:
    demanding = {text: _of_profile(names, profile) for text, names in replies.demanding().items()}
    yield normative.table("success")["text"]["about"].strip()
    yield "## Success"
    rows = {text: row for text, row in _chapter("success", profile).items() if text != "text"}
    yield table(
        ("reply", "condition"),
        [(code(text), _text(row["condition"])) for text, row in rows.items() if demanding.get(text)],
    )
    errors = {text: row for text, row in normative.table("replies").items() if not text.startswith("0x")}
    yield "## Errors"
    yield table(
        ("reply", "condition", "requirements"),
        [
            (code(text), row["cause"], ", ".join(replies.stating(text, demanding[text])))
            for text, row in errors.items()
            if not row.get("own") and demanding.get(text)
        ],
    )
    yield "## Errors whose text is free"
    yield normative.table("success")["text"]["own"].strip()
    if not profile:
        own = [(code(text), row["cause"]) for text, row in errors.items() if row.get("own")]
        yield table(("reply of kvref", "condition"), own)


def _of_profile(names: Iterable[str], profile: str) -> tuple[str, ...]:
    known = requirements.load()
    return tuple(name for name in names if not profile or known[name].applies_to(profile))


# Chapters that an endpoint without mappings does not have.
_OF_MAPPINGS: Final = frozenset({"data_model", "defaults"})
_CHAPTERS: Final[tuple[tuple[str, str, str, Callable[[str], Iterator[str]]], ...]] = (
    (
        "front_matter",
        "Front matter",
        "Scope, terms, conformance, references, notation, security, changes.",
        _front_matter,
    ),
    (
        "lifecycles",
        "Lifecycles",
        "A connection, a mapping, a batch, a lock and a cached item as prose, each with its states.",
        _lifecycles,
    ),
    ("data_model", "Data model", "The tables of an endpoint, their types, ranges and names.", _data_model),
    ("defaults", "Defaults", "Options, settings and rows where nothing else is configured.", _defaults),
    ("grammar", "Grammar", "The lines of the text protocol in ABNF, with the ranges of their numbers.", _grammar),
    ("binary", "Binary protocol", "Header, opcodes and statuses of the binary protocol.", _binary),
    (
        "states",
        "States of a connection",
        "Protocol, binding, batch, snapshot and authentication as state machines.",
        _states,
    ),
    ("replies", "Table of replies", "Condition and exact octets of every reply of the text protocol.", _replies),
    ("statistics", "Statistics", "The rows of `stats`.", _statistics),
)
