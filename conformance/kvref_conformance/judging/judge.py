"""Judge one case: may it be tried here, does the endpoint keep it, and if not, is that documented?"""

from __future__ import annotations

import dataclasses
import secrets
import time
from typing import TYPE_CHECKING

from kvref.errors import SuiteError
from kvref.specification import requirements
from kvref_conformance.case import Setup, Shape
from kvref_conformance.coverage import Exercised
from kvref_conformance.endpoints.probe import needed
from kvref_conformance.errors import CaseFailed, NotRun
from kvref_conformance.judging.budget import Budget
from kvref_conformance.judging.conversation import STAYS_OPEN, Conversation, render
from kvref_conformance.judging.liveness import Liveness
from kvref_conformance.judging.verdict import DEVIATES, DISABLED, FAILS, HOLDS, NOT_RUN, UNSUPPORTED, Verdict
from kvref_conformance.sql.settings import with_interval
from kvref_conformance.wire.template import Names

if TYPE_CHECKING:
    from pathlib import Path

    from kvref.specification.deviations import Deviation, Deviations
    from kvref_conformance.case import Case
    from kvref_conformance.endpoints.endpoint import Endpoint
    from kvref_conformance.judging.conversation import Exchange
    from kvref_conformance.sql.settings import Settings
    from kvref_conformance.sql.world import World

ENGINES = {"plugin": "MySQL with daemon_memcached"}


class Judge:
    """Judges cases against one endpoint.

    Args:
        endpoint: whom.
        deviations: the rows of its profile.
        world: the suite's own tables; None without --sql.
        flush_reason: why flush_all must not be sent; empty when it may.
        tag: letters and digits that no other run uses; every key begins with them.
        settings: brings the endpoint to run with other settings; None without --sql.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        deviations: Deviations,
        world: World | None,
        flush_reason: str,
        tag: str,
        settings: Settings | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.deviations = deviations
        self.world = world
        self.tag = tag
        self.keys: list[str] = []
        self.settings = settings
        self.liveness = Liveness(endpoint)
        self.exercised = Exercised(endpoint.profile)
        self.budget = Budget()
        # Folder with the failing examples of generated cases, kept between runs.
        self.database: Path | None = None
        self._flush_reason = flush_reason
        self._catalogue = requirements.load()

    def judge(self, case: Case, chapter: str) -> Verdict:
        """Try a case and say how it ended; never raises for what the endpoint does."""
        began = time.monotonic()
        conversation = Conversation(self.endpoint, self.names(), self.world)
        text = ""
        try:
            word, reason = self.refuse(case, chapter) or self._run(case, conversation)
        except CaseFailed as failure:
            word, reason, text = FAILS, self.statement_of(case), self.explain(case, str(failure))
        duration = round(time.monotonic() - began, 4)
        self.exercised.take(case, conversation.exchanges, conversation.names.texts)
        return Verdict(case.id, chapter, case.requirements, word, reason, duration, tuple(conversation.exchanges), text)

    def breaks(self, case: Case, slower: float) -> bool:
        """Hold a case again, whatever is documented, and tell whether an answer is not allowed.

        Args:
            case: that broke.
            slower: waits are so many times as long.
        """
        try:
            self._converse(case, Conversation(self.endpoint, self.names(), self.world, slower))
        except (CaseFailed, NotRun):
            return True
        return False

    def names(self) -> Names:
        """Return the names a case may use: those of the world, the version, and a fresh key for each `{k}`."""
        given = self.world.names if self.world else {}
        return Names({**given, "version": self.endpoint.version}, self.fresh_key)

    def fresh_key(self, name: str) -> str:
        """Return an unused key: short, because a key column of the demo shape has 32 characters.

        Keys of one name are equally long, so that the same commands have the same bytes at the same places.
        """
        key = f"{self.tag}{len(self.keys):04x}{name}"
        self.keys.append(key)
        return key

    def statement_of(self, case: Case) -> str:
        """Return the sentences of a case's requirements."""
        return "; ".join(str(self._requirement(name)) for name in case.requirements)

    def explain(self, case: Case, conversation: str) -> str:
        """Return a failure text that suffices alone."""
        about = "\n".join(
            f"{r}\n    sources: {'; '.join(r.sources)} · evidence: {', '.join(r.evidence)}"
            for r in map(self._requirement, case.requirements)
        )
        end = self.endpoint
        where = f"case {case.id} · {end.where} · VERSION {end.version} · profile {end.profile.name}"
        return "\n".join([about, where, *in_force(case), conversation])

    def _requirement(self, name: str) -> requirements.Requirement:
        if name not in self._catalogue:
            raise SuiteError(f"no requirement {name!r}")
        return self._catalogue[name]

    def refuse(self, case: Case, chapter: str = "") -> tuple[str, str] | None:
        """Return the verdict on a case that is not tried, with its reason; None where it is.

        Args:
            case: to be tried.
            chapter: it belongs to; empty where the hangs of the chapter do not count.
        """
        profile = self.endpoint.profile
        if reason := self.liveness.ended or self.budget.refusal(chapter):
            return NOT_RUN, reason
        for requirement in map(self._requirement, case.requirements):
            if not requirement.applies_to(profile.name):
                return UNSUPPORTED, f"{requirement.id} does not apply to profile {profile.name}"
        if case.needs_mappings() and not profile.flag("mapping.supported"):
            return UNSUPPORTED, f"profile {profile.name} has no mappings"
        features = self.endpoint.features
        missing = features.missing(sorted(needed(case, profile)))
        if missing:
            return DISABLED if features.file else UNSUPPORTED, features.why(missing)
        if case.needs_sql() and self.world is None:
            return NOT_RUN, "needs --sql DSN: the suite creates its own tables and reads them"
        if case.engine and self.world is not None and not self.world.database.is_engine(case.engine):
            return NOT_RUN, f"needs {ENGINES.get(case.engine, case.engine)} behind the endpoint"
        if case.flushes and self._flush_reason:
            return NOT_RUN, self._flush_reason
        return None

    def _run(self, case: Case, conversation: Conversation) -> tuple[str, str]:
        row = self.deviations.of(case.id, case.requirements)
        try:
            self._converse(case, conversation)
        except NotRun as reason:
            return NOT_RUN, str(reason)
        except CaseFailed as failure:
            if row is None or conversation.failed is None:
                raise
            if not self._is_recorded(row, conversation.failed, conversation.names):
                recorded = "\n".join(f"recorded: {a!r} -> {b!r}" for a, b in row.conversation)
                raise CaseFailed(f"deviates, but not as documented ({row.reason})\n{recorded}\n{failure}") from failure
            return DEVIATES, f"{row.reason} [{', '.join(row.evidence)}]"
        if row is not None and not row.unset:
            shown = render(conversation.exchanges)
            raise CaseFailed(
                f"unexpected pass: a deviation row says {row.reason!r}; remove it if the endpoint is fixed\n{shown}"
            )
        return HOLDS, ""

    def prepare(self, case: Case) -> None:
        """Let the endpoint run with the settings and the configuration of a case.

        Raises:
            NotRun: it cannot be started with them.
            CaseFailed: it did not come back.
        """
        if self.settings is not None:
            self.settings.bring(case.settings)
        if self.world is not None:
            self.world.configure(case.setup)

    def _converse(self, case: Case, conversation: Conversation) -> None:
        self.prepare(case)
        if self.world is not None and case.shape is not None:
            conversation.names.texts |= self.world.shaped(case.shape)
        conversation.run(case, self.budget)

    def _is_recorded(self, row: Deviation, failed: Exchange, names: Names) -> bool:
        ended = failed.note.startswith(STAYS_OPEN) if row.stays_open else not failed.note
        return ended and any(
            names.render(sent) == failed.sent and names.match(got, failed.got) for sent, got in row.conversation
        )


def in_force(case: Case) -> list[str]:
    """Return the settings and the configuration that a case runs with, a line each; empty where it names none.

    Args:
        case: whose settings the endpoint runs with; without any, they are those of before the run.
    """
    lines = []
    if case.settings is not None:
        settings = ", ".join(f"{name}={value}" for name, value in with_interval(case.settings).items())
        lines.append(f"settings in force: {settings}; all others have their defaults")
    for kind, made, usual in (("configuration", case.setup, Setup()), ("table", case.shape, Shape(""))):
        fields = [] if made is None else [each.name for each in dataclasses.fields(made)]
        changed = [f"{name}={getattr(made, name)!r}" for name in fields if getattr(made, name) != getattr(usual, name)]
        lines += [f"{kind} in force: {', '.join(changed)}"] if changed else []
    return lines


def new_tag() -> str:
    """Return five letters and digits for this run only."""
    # The z sorts the run's mappings behind others, so that none becomes the default at a reload.
    return "z" + secrets.token_hex(2)
