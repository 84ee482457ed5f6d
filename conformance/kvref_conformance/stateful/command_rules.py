"""The rules by which state machines draw commands; `commands` and `concurrency` add their own.

There are many small rules, since each conversation leaves some of them out. The first key is drawn most
often: only commands on one key affect each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from kvref_conformance.model import steps as s
from kvref_conformance.strategies.commands import Arguments, draw_command
from kvref_conformance.strategies.draw import pick, weighted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

    from kvref_conformance.endpoints.endpoint import Endpoint

Forms = dict[str, float]
"""Forms of words, with weights: `k`, `@@m.k`, `@@m`, and those of a mapping that does not exist."""
UNMAPPED: Final[Forms] = {"key": 1}
MAPPED: Final[Forms] = {"mapped": 1}
EITHER: Final[Forms] = {"key": 1, "mapped": 1}
NAME: Final[Forms] = {"name": 3, "unknown name": 1}
ANY: Final[Forms] = {"key": 2, "mapped": 3, "unknown": 1, "name": 0.6, "unknown name": 0.2}
NO_MAPPING: Final = "no-such-mapping"
# Positions of keys, mappings and connections.
KEY: Final = st.sampled_from((0,) * 5 + (1,) * 3 + (2,) * 2)
MAPPING: Final = st.sampled_from((0, 2, 1, 2))
ON: Final = st.integers(0, 2)
RARE: Final = st.sampled_from((False, False, False, True))
# The simplest one comes first: hypothesis leaves out what it can.
MOSTLY: Final = st.sampled_from((False, True, True, True))
PROTOCOLS: Final = st.tuples(*[st.sampled_from((s.TEXT, s.TEXT, s.BINARY))] * 3)
VERBS: Final = dict.fromkeys(s.STORES, 1.0)
INITIALS: Final = (None, None, 0, 1, 2, 3)
_ONE_NAME: Final = "step"  # of the methods of all rules
# Features that commands need.
NEEDED: Final = {"cas": {"cas"}, "touch": {"touch", "gat"}, "gat": {"touch", "gat"}}


def swarm_rule(**arguments: SearchStrategy[Any]) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator that makes a rule of a method, and gives its name to `some_rules`.

    Hypothesis does swarm testing by the names of methods and may leave out the simplest rule too; it then replaces
    steps that are not needed by long ones that do nothing, and cannot delete those. All rules have one name here, which
    it cannot leave out.

    Args:
        arguments: of the method.
    """

    def decorate(method: Callable[..., None]) -> Any:
        name, method.__name__ = method.__name__, _ONE_NAME
        made = rule(**arguments)(method)  # type: ignore[call-overload]  # no argument is a bundle
        guarded: Any = precondition(lambda self: name not in self.left_out)(made)
        guarded.name_of_rule = name
        return guarded

    return decorate


@st.composite
def some_rules(draw: DrawFn) -> set[str]:
    """Draw the rules that a conversation leaves out (Groce and others, "Swarm Testing", ISSTA 2012)."""
    machine = type(draw(st.runner()))
    tenths = draw(st.integers(0, 9))
    names = {getattr(getattr(machine, each), "name_of_rule", "") for each in dir(machine)}
    return {name for name in sorted(names) if name and draw(st.integers(0, 9)) < tenths}


def does(name: str, drawn: SearchStrategy[Any]) -> Any:
    """Return a rule that does the steps of a list that is drawn.

    Args:
        name: of the rule.
        drawn: the lists.
    """

    def do_all(self: CommandRules, steps: list[s.Step]) -> None:
        for step in steps:
            self.do(step)

    do_all.__name__ = name
    return swarm_rule(steps=drawn)(do_all)


def sends(*commands: tuple[str, Forms], most: int = 1) -> Any:
    """Return a rule that draws commands, one after the other on one connection.

    Args:
        commands: kind of each, as `draw_command` has it, or set, cas, or number for a set of a number, and the forms of
            its words. Several have the same key, and each of them may be left out.
        most: words of a get.
    """

    def is_known(self: CommandRules) -> bool:
        return all(
            (self.mappings or "key" in forms) and not NEEDED.get(kind, set()) & set(self.missing)
            for kind, forms in commands
        )

    @st.composite
    def drawn(draw: DrawFn) -> list[s.Locking]:
        self: CommandRules = draw(st.runner())
        on = self.connections[draw(ON) % len(self.connections)]
        key = self.key(draw) if len(commands) > 1 else ""
        taken = [each for each in commands if len(commands) == 1 or draw(MOSTLY)]
        return [self.command(draw, on, kind, forms, key, most) for kind, forms in taken]

    name = "_and_".join("_".join((kind, *forms)) for kind, forms in commands).replace(" ", "_")
    return precondition(is_known)(does(name, drawn()))


class CommandRules(RuleBasedStateMachine):
    """Commands on the keys and mappings of a subclass, which says what a step does.

    connections: names.
    protocols: of the connections; those of text also have meta commands.
    values, flags, expiries, amounts: that are sent.
    keys: that are used.
    mappings: names; none if the endpoint has no mappings.
    missing: features that the endpoint has not.
    left_out: names of rules that the conversation leaves out.
    """

    connections: ClassVar[Sequence[str]]
    values: ClassVar[Sequence[str]]
    flags: ClassVar[Sequence[int]] = (0, 1, 2, 3)
    expiries: ClassVar[Mapping[int, float]] = {0: 1.0}
    # More than each of the values, too.
    amounts: ClassVar[Sequence[str]] = ("0", "1", "2", "3", "7", "10", "13", "20", *("100",) * 3)
    keys: Sequence[str]
    mappings: Sequence[str]
    missing: Collection[str] = ()
    left_out: Collection[str] = ()
    protocols: Mapping[str, str]

    store = sends(("store", UNMAPPED))
    store_mapped = sends(("store", MAPPED))
    # Most conversations need items.
    set_key = sends(("set", UNMAPPED))
    set_and_read = sends(("set", MAPPED), ("get", UNMAPPED))
    set_and_read_again = set_and_read
    set_and_count = sends(("number", UNMAPPED), ("count", UNMAPPED))
    set_and_cas = sends(("set", UNMAPPED), ("cas", UNMAPPED))
    get = sends(("get", UNMAPPED), most=8)
    get_again = get
    get_mapped = sends(("get", MAPPED))
    count = sends(("count", EITHER))
    delete = sends(("delete", EITHER))
    bind_by_word = sends(("get", NAME))

    def do(self, step: s.Step) -> None:
        """Do a step."""
        raise NotImplementedError

    def begin_with(self, protocols: Sequence[str]) -> None:
        """Set the protocols of the connections: those that the endpoint has."""
        chosen = zip(self.connections, protocols, strict=False)
        self.protocols = {on: s.TEXT if "binary" in self.missing else protocol for on, protocol in chosen}

    def key(self, draw: DrawFn) -> str:
        """Draw a key."""
        position: int = draw(KEY)
        return self.keys[position]

    def command(self, draw: DrawFn, on: str, kind: str, forms: Forms, key: str = "", most: int = 1) -> s.Locking:
        """Draw a command; arguments as of `sends`."""
        protocol = self.protocols[on]
        if protocol == s.TEXT and "meta" not in self.missing and draw(RARE):
            protocol = s.META
        values = [value for value in self.values if value.isdigit()] if kind == "number" else self.values
        arguments = Arguments(
            lambda _: self._word(draw, forms, key or self.key(draw)),
            lambda: pick(draw, values),
            {"store" if kind in {"set", "cas", "number"} else kind: 1.0},
            VERBS if kind == "store" else {"set" if kind == "number" else kind: 1.0},
            dict.fromkeys(range(1, most + 1), 1.0),
            self.flags,
            self.expiries,
            self.amounts,
            INITIALS,
            numbered=0.0 if "cas" in self.missing else 0.25,
            silent=0.25 if "key" in forms else 0.5,
            named=0.25,
            stale=0.25,
        )
        return draw_command(draw, on, protocol, arguments)

    def _word(self, draw: DrawFn, forms: Forms, key: str) -> str:
        form = weighted(draw, forms) if self.mappings else "key"
        if form == "key":
            return key
        name = NO_MAPPING if form.startswith("unknown") else self.mappings[draw(MAPPING)]
        return f"@@{name}" if form.endswith("name") else f"@@{name}.{key}"

    @initialize(names=some_rules())
    def leave_out(self, names: set[str]) -> None:
        """Leave rules out of the conversation."""
        self.left_out = names

    def absent(self) -> None:
        """Do nothing: the simplest rule, which hypothesis tries in the place of every other one."""

    absent.__name__ = _ONE_NAME
    absent = rule()(absent)

    @precondition(lambda self: self.mappings)
    @swarm_rule(on=ON, mapping=MAPPING, unknown=RARE)
    def bind(self, on: int, mapping: int, *, unknown: bool) -> None:
        """Bind a mapping, or one that does not exist, by its command."""
        name = self.connections[on % len(self.connections)]
        self.do(s.Bind(name, NO_MAPPING if unknown else self.mappings[mapping], protocol=self.protocols[name]))


def real_names(names: Mapping[str, str], mappings: Mapping[str, str]) -> list[str]:
    """Return the names of mappings at the endpoint, in their order; none if the endpoint has none."""
    return [names[mapping] for mapping in mappings if mapping in names]


def missing_in(endpoint: Endpoint) -> set[str]:
    """Return the features that an endpoint or its profile has not."""
    lacking = {name for name, there in endpoint.features.there.items() if not there}
    return lacking | ({"touch", "gat", "meta"} if not endpoint.profile.flag("verbs.beyond_plugin") else set())
