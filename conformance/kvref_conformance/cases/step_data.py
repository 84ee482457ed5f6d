"""Steps of a case as TOML: `[request, reply, …, {options}]`, tables such as `{ sql = "…" }`, and words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from kvref import profiles
from kvref.errors import choices
from kvref_conformance.cases.templates import filled, parameters, rows
from kvref_conformance.steps import (
    AwaitReply,
    AwaitSql,
    By,
    Disconnect,
    Eventually,
    Logged,
    Mark,
    Pause,
    Reload,
    Send,
    Sql,
    StartRequest,
    StartSql,
    Tick,
)
from kvref_conformance.steps.forms import table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from kvref_conformance.steps import Step

PROTOCOLS: Final = ("text", "binary")
NULL: Final = "{null}"
WORDS: Final[Mapping[str, Step]] = {"reload": Reload(), "await-second": Tick(), "mark-binlog": Mark()}
# The name of a step that is a table is that of its first field, whose value is this field of the step.
FORMS: Final[Mapping[str, tuple[type[Step], str]]] = {
    "sql": (Sql, "statement"),
    "sql-start": (StartSql, "statement"),
    "sql-end": (AwaitSql, "on"),
    "ask": (StartRequest, "packets"),
    "answer": (AwaitReply, "allow"),
    "hang-up": (Disconnect, "on"),
    "pause": (Pause, "seconds"),
    "binlog": (Logged, "allow"),
}
GROUP: Final = ("steps", "each", "times")
_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class StepReader:
    """Reads the steps of a chapter.

    Args:
        shared: lists of steps by name.
        texts: by name, those that depend on a fact.
        protocol: of the requests that do not say otherwise.
    """

    shared: Mapping[str, list[Any]]
    texts: Mapping[str, Mapping[str, Any]]
    protocol: str

    def read(self, made: Any) -> Iterator[Step]:
        """Yield the steps that decoded TOML is: one, one for each value or time, or those of a name that is shared.

        Raises:
            ValueError: it is none, or a part is missing, unknown or wrong.
            TypeError: as `forms.read`.
        """
        match made:
            case str() if made in WORDS:
                yield WORDS[made]
            case str() if made in self.shared:
                yield from chain.from_iterable(map(self.read, self.shared[made]))
            case [*texts, dict() as options] if "by" not in options:
                for each, given in _repeated(texts, options):
                    yield self._exchange(each, given)
            case [_, *_]:
                yield self._exchange(made, {})
            case {"steps": list(steps)}:
                others = {name: value for name, value in made.items() if name != "steps"}
                only(others, GROUP, "field")
                for each, _ in _repeated(steps, others):
                    yield from chain.from_iterable(map(self.read, each))
            case dict():
                for _, given in _repeated([], made):
                    yield self._table(given)
            case _:
                known = (*WORDS, *self.shared)
                raise ValueError(f"{shown(made)} is not [request, reply], a table or a word{choices(str(made), known)}")

    def _exchange(self, texts: list[Any], options: dict[str, Any]) -> Step:
        request, *replies = (str(text) if isinstance(text, int) else text for text in texts)  # a number of the matrix
        if not replies and not options.get("quiet"):
            raise ValueError(f'{shown(texts)}: write the replies that are allowed, "" for none')
        return self._step(Send, {"packets": request, "allow": replies or [""], **options})

    def _table(self, made: dict[str, Any]) -> Step:
        kinds = [name for name in made if name in FORMS]
        if len(kinds) != 1:
            raise ValueError(f"{shown(made)}: a step that is a table has one of {', '.join(FORMS)}")
        kind, field = FORMS[kinds[0]]
        given = {field if name == kinds[0] else name: value for name, value in made.items()}
        if kind is Sql and ("rows" in given) != str(given["statement"]).startswith("SELECT"):
            raise ValueError(f"{shown(made)}: a SELECT, and no other statement, has `rows`")
        return self._step(kind, nulls(given))

    def _step(self, kind: type[Any], given: dict[str, Any]) -> Step:
        """Return a step of its fields, where a text may be written for a list of one, and `protocol` for `binary`."""
        if kind in (Send, StartRequest):
            protocol = given.pop("protocol", self.protocol)
            only([protocol], PROTOCOLS, "protocol")
            given["binary"] = protocol == "binary"
        within = {"within": given.pop("within")} if kind in (Send, Sql) and "within" in given else {}
        given |= {name: [given[name]] for name in ("packets", "allow") if isinstance(given.get(name), str | dict)}
        allow = given.pop("allow") if kind in (Send, AwaitReply) else None
        if left := parameters(given):
            raise ValueError(f"{left[0][0]} is neither in the matrix nor in texts")
        if allow is None:
            step = table(kind, given, shown(given))
        else:
            step = replace(table(kind, {**given, "allow": []}, shown(given)), allow=self._allowed(allow))
        made: Step = Eventually(step, **within) if within else step
        return made

    def _allowed(self, replies: list[Any]) -> tuple[str, ...] | By:
        """Return the replies, by the value of a fact where one depends on a fact."""
        if isinstance(replies[0], dict) and len(replies) == 1:
            return _by(replies[0], lambda text: tuple(text) if isinstance(text, list) else (text,))
        if wrong := [reply for reply in replies if not isinstance(reply, str)]:
            raise ValueError(f"{shown(wrong[0])} is not a reply: write texts, or one table with `by`")
        names = {found[2]: found[0] for found in parameters(replies)}
        if not names:
            return tuple(replies)
        if unknown := [written for name, written in names.items() if name not in self.texts]:
            raise ValueError(f"{unknown[0]} is neither in the matrix nor in texts")
        if len(names) > 1:
            raise ValueError(f"{' and '.join(names.values())}: a reply depends on one fact")
        ((name, _),) = names.items()
        return _by(self.texts[name], lambda text: tuple(filled(replies, {name: text})))


def _by(given: Mapping[str, Any], read: Callable[[Any], tuple[str, ...]]) -> By:
    """Return replies by the value of a fact, of a table with `by` and a text for each value."""
    vocabulary = profiles.vocabulary()
    only([given["by"]], vocabulary, "fact")
    kind = vocabulary[given["by"]]["type"]
    words = {"bool": {"true": True, "false": False}}.get(kind, {})
    texts = {name: text for name, text in given.items() if name != "by"}
    if kind not in ("int", "str"):
        only(texts, words or kind.split(" | "), f"value of {given['by']}")
    return By(given["by"], {words.get(name, int(name) if kind == "int" else name): read(texts[name]) for name in texts})


def _repeated(texts: list[Any], options: dict[str, Any]) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield a step with its options for each combination of `each`, as often as `times` says."""
    single = {name: value for name, value in options.items() if name not in ("each", "times")}
    times = options.get("times", 1)
    if not isinstance(times, int):
        raise TypeError(f"times: {times!r} is not a number")
    for row in rows(options.get("each", {})):
        for _ in range(times):
            yield filled(texts, row), filled(single, row)


def nulls(value: Any) -> Any:
    """Return decoded TOML with None for each NULL."""
    if isinstance(value, list):
        return [nulls(each) for each in value]
    if isinstance(value, dict):
        return {name: nulls(each) for name, each in value.items()}
    return None if value == NULL else value


def only(given: Collection[Any], known: Collection[str], what: str) -> None:
    """Raise ValueError for the first name that is not known."""
    for name in given:
        if name not in known:
            raise ValueError(f"unknown {what} {name!r}{choices(str(name), known)}")


def shown(made: object) -> str:
    """Return decoded TOML as an error shows it, long ones cut."""
    return repr(made)[:_SHOWN]
