"""A conversation: set-up, steps, and the replies of each version; one JSON object a line of a transcript.

The format is described in README.md in this folder and published as `#/$defs/recording` of `../steps/schema.json`. A
script is a conversation whose steps have no `got` yet.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kvref.errors import SuiteError
from kvref_conformance.corpus.templates import without_placeholders
from kvref_conformance.steps import Send, Sql, StartSql, Watch, innermost
from kvref_conformance.steps.forms import FORMS, OF_RECORDINGS, Writer, read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.steps import Step

# A statement that was started and is waited for.
JOIN_SECONDS: Final = 120.0

Got: TypeAlias = "Mapping[str, Json]"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A step, and what was recorded of it.

    Args:
        step: what is sent or done; nothing is allowed in it, and its patience is 0 for that of the player.
        got: by version, the reply, the result, or the state of the memcached port.
        cols: numbers of the columns to keep of the rows, from 0.
        mask: expression whose groups become `#` in the cells.
        at: in recorded traffic, seconds after the beginning of the recording at which it was sent.
        took: in recorded traffic, seconds until the answer was complete.
    """

    step: Step
    got: Got = field(default_factory=dict)
    cols: tuple[int, ...] | None = None
    mask: str | None = None
    at: float | None = None
    took: float | None = None

    @property
    def binary(self) -> bool:
        """Return whether what is sent and received is frames, so that replies are hexadecimal digits."""
        return isinstance(self.step, Send) and self.step.binary

    @property
    def statement(self) -> str | None:
        """Return the statement that is sent; None for a step without one."""
        inner = innermost(self.step)
        return without_placeholders(inner.statement) if isinstance(inner, Sql | StartSql | Watch) else None


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
    steps: tuple[Recorded, ...]
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
        recorded = {version for step in self.steps for version in step.got}
        return frozenset(recorded | self.port.keys() | self.crash.keys())


# Fields of a recorded step that its form does not have.
SEEN: Final = frozenset(each.name for each in fields(Recorded)) - {"step"}
# What recordings leave out of the forms.
DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "send": {"allow": [], "patience": 0.0},
    "answer": {"allow": [], "patience": 0.0},
    "sql end": {"refused": False, "patience": JOIN_SECONDS},
    "crowd": {"send": "", "patience": 0.0, "close": False},
}
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
        raise SuiteError(f"{where}: steps is not a list")
    steps = tuple(_recorded(row, f"{where}, step {number}") for number, row in enumerate(line.get("steps", ()), 1))
    conversation: Conversation = _build(Conversation, {**line, "steps": steps}, where)
    return conversation


def to_json(conversation: Conversation) -> dict[str, Any]:
    """Return the line of a conversation; what has its default value is left out."""
    row = _as_json(conversation)
    row["steps"] = [
        {**_form(each.step), **{name: value for name, value in _as_json(each).items() if name != "step"}}
        for each in conversation.steps
    ]
    return {key: row[key] for key in ORDER if key in row}


def _form(step: Step) -> dict[str, Any]:
    ((name, given),) = Writer().step(step).items()
    defaults = DEFAULTS.get(name, {})
    return {name: {key: value for key, value in given.items() if key not in defaults or value != defaults[key]}}


def _recorded(row: object, where: str) -> Recorded:
    if not isinstance(row, dict):
        raise SuiteError(f"{where}: {repr(row)[:60]} is not a JSON object")
    seen = {key: row[key] for key in row if key in SEEN}
    form = {key: {**DEFAULTS.get(key, {}), **given} if isinstance(given, dict) else given
            for key, given in row.items() if key not in SEEN}  # fmt: skip
    try:
        step = read(form, FORMS | OF_RECORDINGS)
    except (TypeError, ValueError) as error:
        raise SuiteError(f"{where}: {error}") from error
    recorded: Recorded = _build(Recorded, {"step": step, **seen}, where)
    return recorded


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
        raise SuiteError(f"{where}: {min(wrong)} is not a list")
    return kind(**{key: tuple(value) if key in tuples and value is not None else value for key, value in row.items()})


def _as_json(thing: Conversation | Recorded) -> dict[str, Any]:
    row = {}
    for each in fields(thing):
        value = getattr(thing, each.name)
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        if value != default:
            row[each.name] = list(value) if isinstance(value, tuple) else value
    return row
