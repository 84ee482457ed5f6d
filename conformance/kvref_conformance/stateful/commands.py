"""Any order of commands, and any arguments of commands: hypothesis state machines, judged by the model.

Two connections, three mappings (two of one table, one of another under a name of one letter), three keys that collide.
Excluded: ranges, words of 250 bytes and flush_all, which end or freeze a plugin server. Endpoints without mappings,
where no table limits an item, also get long keys, unusual values, dates and huge numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from hypothesis import strategies as st
from hypothesis import target
from hypothesis.stateful import initialize, precondition

from kvref_conformance.judging.findings import Search, signature
from kvref_conformance.model import steps as s
from kvref_conformance.model.model import Model
from kvref_conformance.model.words import Mappings
from kvref_conformance.stateful.as_case import as_case
from kvref_conformance.stateful.command_rules import (
    ANY,
    EITHER,
    PROTOCOLS,
    RARE,
    UNMAPPED,
    CommandRules,
    missing_in,
    real_names,
    sends,
    swarm_rule,
)
from kvref_conformance.stateful.examples import judge_examples
from kvref_conformance.stateful.modelled import ModelledConversation
from kvref_conformance.stateful.run import example_settings, run_machine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvref_conformance.case import Case
    from kvref_conformance.judging.judge import Judge
    from kvref_conformance.judging.verdict import Verdict

STEPS: Final = 50
CONNECTIONS: Final = ("a", "b")
TABLES: Final = {"m1": "t1", "m1b": "t1", "q": "t3"}
ARGUMENTS: Final = "any-arguments"
# The maximum length of a key.
LONGEST: Final = 250


def judge_commands(judge: Judge, case: Case, chapter: str, examples: int, start: int) -> list[Verdict]:
    """Run conversations of at most STEPS commands until nothing new is found; arguments as of `judge_generated`."""
    search = Search(judge)
    kind = ArgumentMachine if case.id == ARGUMENTS else CommandMachine
    machine: type[CommandMachine] = type(case.id, (kind,), {"judge": judge, "search": search, "case": case.id})
    settings = example_settings(examples, judge.database, stateful_step_count=STEPS)

    def script() -> Case:
        return as_case(case, search.last, judge)

    return judge_examples(search, judge, case, chapter, start, lambda: run_machine(machine, settings, start), script)


def may_join(machine: CommandMachine) -> bool:
    """Return whether several commands may be in a packet: not where addresses of words decide (KV-MGET-026)."""
    profile = machine.judge.endpoint.profile
    return "pipelining" not in machine.missing and profile["mapping.words_in_one_get"] != "until-looked-up"


class CommandMachine(CommandRules):
    """Every verb, in any order, on either connection; `judge`, `search` and `case` are set by `judge_commands`."""

    judge: ClassVar[Judge]
    search: ClassVar[Search]
    case: ClassVar[str] = "any-order-of-commands"
    connections = CONNECTIONS
    keys: list[str]
    values: ClassVar[Sequence[str]] = ("x", "", "7", "12", "12ab", "99")
    # A row whose time is over is still a row over SQL.
    expiries: ClassVar[Mapping[int, float]] = {0: 2.0, 1000: 1}

    store_word = sends(("store", ANY))
    get_words = sends(("get", ANY), most=5)
    touch = sends(("touch", EITHER))
    get_and_touch = sends(("gat", UNMAPPED), most=4)

    def __init__(self) -> None:
        self.search.patience.check()
        super().__init__()
        self.keys = [self.judge.fresh_key(f"k{n}") for n in range(3)]
        self.names = self.judge.world.names if self.judge.world else {}
        self.mappings = real_names(self.names, TABLES)
        self.missing = missing_in(self.judge.endpoint)
        self.packet: list[s.Request] = []
        self.joins = False
        self._clean_words()
        self.judge.exercised.begin(self.names)

    @initialize(protocols=PROTOCOLS)
    def begin(self, *, protocols: Sequence[str]) -> None:
        """Open the connections."""
        self.begin_with(protocols)
        endpoint, exercised = self.judge.endpoint, self.judge.exercised
        self.conversation = ModelledConversation(endpoint, self._new_model(), self.report, exercised=exercised)
        for on, protocol in self.protocols.items():
            self.conversation.take(s.Open(on, self.names.get("m1", ""), protocol))

    @precondition(may_join)
    @swarm_rule()
    def join(self) -> None:
        """Send the next command in one packet with the command behind it."""
        self.joins = True

    @swarm_rule(on=st.sampled_from(CONNECTIONS), really=RARE)
    def unknown(self, on: str, *, really: bool) -> None:
        """Send what is not a command."""
        if really:
            self.do(s.Unknown(on, protocol=self.protocols[on]))

    def do(self, step: s.Step) -> None:
        """Send a command, in one packet with others unless its reply or its effect depends on that."""
        assert isinstance(step, s.Request), "only commands are drawn"
        number = isinstance(step, s.Store) and step.verb == "cas"
        # memcached 1.6.45 shortens a value whose reply to a get is not sent yet, instead of filling it up.
        shown = isinstance(step, s.Count) and any(isinstance(each, s.Get) for each in self.packet)
        if self.packet and (number or shown or self.packet[0].on != step.on):
            self.send()
        self.packet.append(step)
        if not self.joins:
            self.send()
        self.joins = False

    def send(self) -> None:
        """Send what waits to be sent, and compare the rows behind a write."""
        steps, self.packet = self.packet, []
        if steps:
            self.conversation.take(*steps)
        if any(not isinstance(step, s.Get | s.Bind) for step in steps):
            self.compare_rows()

    def compare_rows(self) -> None:
        """Compare the rows with the model's: behind each write, since what follows a failure cannot be shrunk away."""
        if self.judge.world is not None and self.names:
            for table in self.conversation.model.all_tables():
                self.conversation.compare_rows(self.judge.world.database, table, "c1, c2, c3", self.keys)

    def report(self, conversation: ModelledConversation) -> None:
        """Take what is not allowed to the search."""
        assert conversation.wrong is not None, "something is not allowed"
        self.search.fail(self.case, tuple(conversation.exchanges), signature(*conversation.wrong, self.keys))

    def teardown(self) -> None:
        """Close the connections and compare the rows."""
        if hasattr(self, "conversation"):
            try:
                self.send()
            finally:
                self.conversation.close()
            self.compare_rows()
            target(len(self.conversation.kinds), label="kinds of requests and replies")

    def _new_model(self) -> Model:
        profile, world = self.judge.endpoint.profile, self.judge.world
        if world is None or not self.names:
            return Model(profile)
        tables = {self.names[mapping]: self.names[table] for mapping, table in TABLES.items()}
        return Model(profile, Mappings.of(profile, tables, world.default_words()))

    def _clean_words(self) -> None:
        # A word too short to switch is an ordinary key (core:map-010), the same in each conversation.
        if self.judge.world is not None:
            for table in {self.names[table] for table in TABLES.values()}:
                self.judge.world.database.execute(f"DELETE FROM {table} WHERE SUBSTR(c1, 1, 2) = '@@'")


class ArgumentMachine(CommandMachine):
    """Usual and unusual arguments on plain memcached, as its protocol defines an item."""

    # Not white space alone: memcached 1.6.18 counts what is in memory behind it. Not NUL first: it reads a number up to
    # NUL, whatever is appended.
    values = (
        *("0", "7", "99", "100", "18446744073709551615", "9223372036854775807"),
        *("x", "", "12ab", "a b", "a\r\nb", "END\r\n", "get x\r\n", "\xff\0\xfe", "v" * 20000),
    )
    flags = (0, 1, 65535, 65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
    # Seconds from now, up to thirty days; negative: gone at once; beyond thirty days a date, here one of 1970 or 2038.
    expiries = dict.fromkeys((0, 1000, 2592000, -1, 2592001, (1 << 31) - 1), 1.0)
    amounts = (
        *("0", "1", "10", "18446744073709551615", "9223372036854775808"),
        *("18446744073709551616", "-1", "x", "1.5"),
    )

    @initialize(protocols=PROTOCOLS, long=st.integers(0, 3))
    def begin(self, *, protocols: Sequence[str], long: int = 3) -> None:
        """Open the connections; one of the keys may be as long as a key can be."""
        if long < len(self.keys):
            self.keys[long] = self.keys[long].ljust(LONGEST, "x")
            self.judge.keys.append(self.keys[long])
        super().begin(protocols=protocols)
