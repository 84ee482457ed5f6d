"""One run: from the options to the exit code. What it opens it closes, what it changed it puts back."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

from kvref.specification import deviations, requirements
from kvref_conformance import sql
from kvref_conformance.cases import all_cases
from kvref_conformance.coverage import summary
from kvref_conformance.endpoints import endpoint
from kvref_conformance.endpoints.probe import as_toml, probe
from kvref_conformance.errors import CannotJudge, CaseFailed, NotRun
from kvref_conformance.judging import own_deviations
from kvref_conformance.judging.budget import Budget
from kvref_conformance.judging.judge import Judge, new_tag
from kvref_conformance.judging.liveness import Liveness
from kvref_conformance.judging.verdict import (
    BROKEN,
    CONFORMS,
    DEVIATES,
    HANG,
    HOLDS,
    NON_STRICT,
    NOT_RUN,
    PASSING,
    Tally,
    Verdict,
    at_level,
    counted,
)
from kvref_conformance.reports import groups, html, jsonl, levels, markdown
from kvref_conformance.reports.header import Header
from kvref_conformance.sql import layout, reload
from kvref_conformance.sql.settings import Settings, by_command
from kvref_conformance.sql.world import World
from kvref_conformance.triage.follow_up import Aftermath, replay_words
from kvref_conformance.triage.repeat import Repeats

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

    from kvref_conformance.case import Case
    from kvref_conformance.endpoints.endpoint import Endpoint
    from kvref_conformance.judging.own_deviations import OwnDeviations
    from kvref_conformance.reports.progress import ProgressDisplay
    from kvref_conformance.sql.settings import Restart

# The MySQL whose defaults count where the endpoint is not a MySQL.
NEWEST = "8.0.33"
AUTO = "auto"
# Items of the suite deleted in one packet, and seconds after which the rest stays.
TOGETHER = 50
CLEANING_SECONDS = 20.0
NO_SQL = "none: what needs --sql is not-run"


@dataclass
class Run:
    """A run in progress.

    Args:
        judge: judges the cases.
        tally: the verdicts so far.
        header: what the report says about the run.
        folder: folder of the report; None: no report.
        examples: random conversations of the machine.
        histories: of three connections, under each group of settings.
        seed: of the machine and the histories.
        own: the user's deviations; None without a file.
        update: rewrite that file at the end.
        aftermath: checks the endpoint after each case.
        level: what counts: one of `verdict.DEMANDS`.
        send: takes the verdicts of this run, which another process counts; None: they are counted here.
    """

    judge: Judge
    aftermath: Aftermath
    level: str
    tally: Tally
    header: Header
    folder: Path | None
    examples: int
    histories: int
    seed: int
    own: OwnDeviations | None = None
    update: bool = False
    watch: ProgressDisplay | None = None
    planned: bool = False
    shows_profile: bool = False
    send: Callable[[Verdict], None] | None = None
    _notes: list[str] = field(default_factory=list)

    @classmethod
    def start(cls, options: Namespace, restart: Restart) -> Run:
        """Reach the endpoint and make the suite's tables.

        Args:
            options: pytest's, with those of the plugin.
            restart: the hook `pytest_kvref_restart`, called if there is no --restart.

        Raises:
            CannotJudge: an option, the endpoint or the database is unusable.
            SuiteError: the catalogue or the deviations are malformed.
        """
        if not options.endpoint:
            raise CannotJudge("no endpoint: give --endpoint HOST:PORT or unix:PATH")
        if options.update_deviations and not options.deviations:
            raise CannotJudge("--update-deviations needs --deviations FILE: the file that it writes")
        budget = Budget(options.time_limit, options.max_hangs, options.max_failures)
        target = endpoint.find(options.endpoint, options.profile or AUTO)
        spared = "" if options.allow_destructive else _flush_reason(target, options)
        if not target.features.file:
            flushes = not spared and not target.profile.flag("mapping.supported")
            target = replace(target, features=probe(target.address, target.sentinel, flushes=flushes))
        known = None
        if options.deviations:
            path, update = Path(options.deviations), options.update_deviations
            known = own_deviations.load(path, target.profile.name, target.version, update=update)
        tag = new_tag()
        again = by_command(options.restart) if options.restart else restart
        liveness = Liveness(target)
        world = _world(target, options, tag, liveness)
        database = world.database if world is not None else None
        over_sql = "" if database is None else database.over_sql()
        rows = deviations.load(target.profile.name, over_sql, target.version)
        judge = Judge(target, rows, world, spared, tag)
        judge.liveness = liveness
        judge.budget = budget
        judge.database = Path(options.database) if options.database else None
        liveness.revive = lambda: again({})
        if world is not None:
            judge.settings = Settings(target.address, again, world.clear, lambda: _reconnect(world, liveness))
            liveness.back = judge.settings.forget
        liveness.mark()
        dead = rows.without_case((case.id, case.requirements) for case in all_cases())
        complaints = [f"deviations/{target.profile.name}.toml: {subject} matches no case" for subject in dead]
        complaints += known.complaints() if known is not None else []
        complaints += layout.complaints(database) if database is not None else []
        product = database.product() if database is not None else None
        header = Header.of(target, product, options)
        folder = Path(options.report) if options.report else None
        after = Aftermath(judge, Repeats(options.repeat), folder, replay_words(options, target.where))
        tally = Tally(complaints=complaints)
        numbers = (options.examples, options.histories, options.seed)
        run = cls(judge, after, options.level, tally, header, folder, *numbers, known, options.update_deviations)
        run.shows_profile = options.profile == AUTO
        return run

    def header_lines(self) -> list[str]:
        """Say who is judged, by what, and why."""
        target = self.judge.endpoint
        return [
            f"endpoint: {target.where}, VERSION {target.version}",
            f"profile: {target.profile.name} ({target.reason})",
            f"sql: {f'{self.header.sql}: {self.header.database}' if self.header.sql else NO_SQL}",
            f"features: {self._features()}",
            f"machine: {self.examples} examples, {self.histories} histories, seed {self.seed}",
            *(self.profile_file().splitlines() if self.shows_profile else ()),
        ]

    def profile_file(self) -> str:
        """Return what was found, as a file that freezes it."""
        target = self.judge.endpoint
        return as_toml(target.profile.name, target.version, self.judge.endpoint.features)

    def plan(self, cases: Sequence[Case]) -> list[str]:
        """Say how many of these cases would be tried, and why the others would not."""
        refused = Counter(self.judge.refuse(case) for case in cases)
        tried = refused.pop(None, 0)
        lines = [
            f"{count} {refusal[0]}: {refusal[1]}" for refusal, count in refused.most_common() if refusal is not None
        ]
        return [f"{tried} of {len(cases)} cases would be tried", *lines]

    def _features(self) -> str:
        there = self.judge.endpoint.features.there
        without = ", ".join(name for name, has in there.items() if not has)
        with_ = ", ".join(name for name, has in there.items() if has)
        return f"{with_}{f'; without {without}' if without else ''}"

    def keep(self, record: Verdict) -> Verdict:
        """Keep a verdict, and return it in the light of what follows it, of its level and of the user's deviations."""
        record = self.aftermath.of(record, known=self.own is not None and self.own.names(record))
        if record.verdict == HANG:
            self.judge.budget.count_hang(record.chapter)
        if self.send is not None:
            self.send(record)
            return record
        return self.count(record)

    def end_test(self, *records: Verdict) -> None:
        """Keep the verdicts on a case, several where it found several things, and end its test accordingly."""
        __tracebackhide__ = True
        recorded = [self.keep(record) for record in records]
        if broken := [record.text for record in recorded if record.verdict in BROKEN]:
            raise CaseFailed("\n\n".join(broken))
        if any(record.verdict in {DEVIATES, NON_STRICT} for record in recorded):
            pytest.xfail(recorded[0].reason)
        if recorded[0].verdict not in PASSING:
            pytest.skip(f"{recorded[0].verdict}: {recorded[0].reason}")

    def end_generated_test(self, case: Case, chapter: str) -> None:
        """Judge a case without steps, and end its test."""
        __tracebackhide__ = True
        from kvref_conformance.stateful.generated import judge_generated  # noqa: PLC0415 - hypothesis is loaded for these chapters alone

        examples = self.histories if chapter == "concurrency" else self.examples
        self.end_test(*judge_generated(self.judge, case, chapter, examples, self.seed))

    def count(self, record: Verdict) -> Verdict:
        """Count a verdict, and return it in the light of its level and of the user's deviations."""
        tested = [requirements.load()[name] for name in record.requirements]
        record = replace(record, verdict=at_level(record.verdict, tested, self.level))
        if self.own is not None:
            record = self.own.judged(record)
        self.tally.verdicts.append(record)
        if record.verdict in BROKEN:
            self.judge.budget.count_failure()
        if self.watch is not None:
            self.watch.see(record, self.tally)
        return record

    def put_back(self) -> None:
        """Put everything back; what cannot be put back counts against the endpoint."""
        try:
            self._put_back()
        except (CannotJudge, CaseFailed, NotRun, OSError, pymysql.MySQLError, sqlite3.Error) as error:
            self.tally.complaints.append(f"could not put the endpoint back as it was: {error}")

    def finish(self, *, interrupted: bool) -> None:
        """Put everything back and write the report, also a partial one; what cannot be put back counts against it."""
        if self.watch is not None:
            self.watch.close()
        self.put_back()
        if self.planned:
            return
        if self.own is not None and self.update and not interrupted:
            self._notes.append(self.own.update())
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "profile.toml").write_text(self.profile_file(), encoding="utf-8")
            jsonl.write(self.folder / "report.jsonl", self.header, self.tally, self._exercised)
            text = markdown.failures(self.header, self.tally)
            (self.folder / "report.md").write_text(text, encoding="utf-8")
            html.write(self.folder / "report.html", self.header, self.tally, self._exercised)
            profile = self.header.profile
            levels.write_badges(self.folder / "badges", levels.verdicts(self.tally, profile), profile)
        if self.watch is not None:
            last = ["interrupted; the endpoint is configured as before"] if interrupted else []
            self.watch.summarise(self.tally, [*self.closing_lines(), *last])

    def exit_code(self) -> int:
        """Return the exit code of the run; of a dry run 0."""
        return CONFORMS if self.planned else self.tally.exit_code()

    def closing_lines(self) -> list[str]:
        """Return complaints, unrepeated answers, why cases were not-run, verdicts, the sum, and where the report is."""
        lines = [f"complaint: {text}" for text in self.tally.complaints]
        lines += [f"{v.case}: {v.reason}\n{v.text}" for v in self.tally.verdicts if v.verdict == HOLDS and v.reason]
        reasons = Counter((v.verdict, v.reason) for v in self.tally.verdicts if v.verdict == NOT_RUN)
        lines += [f"{count} {word}: {reason}" for (word, reason), count in reasons.items()]
        lines += groups.lines(self.tally.verdicts)
        lines += summary.closing_lines(self._exercised)
        lines += levels.lines(self.tally, self.header.profile)
        lines.append(
            f"{self.judge.endpoint.where} as {self.judge.endpoint.profile.name}: {counted(self.tally.totals())}"
        )
        lines += self._notes
        if self.folder is not None and (self.folder / "report.html").is_file():
            lines.append(f"report: {self.folder / 'report.html'}")
        return lines

    @cached_property
    def _exercised(self) -> dict[str, Any]:
        """Count once, at the end of the run."""
        return summary.as_json(self.judge.exercised)

    def _put_back(self) -> None:
        if self.judge.settings is not None:
            self.judge.settings.bring(None)
        if self.judge.world is not None:
            self.judge.world.remove()
            self.judge.world.database.close()
            return
        keys = self.judge.keys
        together = 1 if self.judge.endpoint.features.missing(["pipelining"]) else TOGETHER
        deadline = time.monotonic() + CLEANING_SECONDS
        with self.judge.endpoint.connect() as connection:
            while keys and time.monotonic() < deadline:
                group, keys = keys[:together], keys[together:]
                connection.exchange((b"".join(f"delete {key}\r\n".encode() for key in group),))
        if keys:
            self._notes.append(f"up to {len(keys)} test items were left behind (clean-up would take too long)")


def _reconnect(world: World, liveness: Liveness) -> None:
    world.database.connect_again()
    liveness.mark()


def _world(target: Endpoint, options: Namespace, tag: str, liveness: Liveness) -> World | None:
    if options.sql is None:
        return None
    if not target.profile.flag("mapping.supported"):
        raise CannotJudge(f"--sql does not apply to profile {target.profile.name}: it has no mappings")
    version = str(target.profile["identity.version"])
    database = sql.connect(options.sql, NEWEST if version == "own" else version)
    if wrong := layout.problems(database):
        database.close()
        raise CannotJudge(f"--sql: {'; '.join(wrong)} ({layout.EXPECTED})")
    read_again = reload.chosen(options.reload, database, target.address)

    def reloaded() -> None:
        assert read_again is not None
        read_again()
        # The plugin counts its uptime from here.
        liveness.mark()

    world = World(database, target, reloaded if read_again is not None else None, tag)
    try:
        world.create()
    except BaseException:
        world.remove()
        database.close()
        raise
    return world


def _flush_reason(target: Endpoint, options: Namespace) -> str:
    if options.sql is not None:
        return ""
    if target.profile.flag("mapping.supported"):
        return "needs --sql DSN: flush_all would empty a table that is not the suite's own"
    with target.connect() as connection:
        stats = connection.exchange((b"stats\r\n",)).data
    if b"STAT curr_items 0\r\n" in stats:
        return ""
    holds = (
        "the endpoint holds items"
        if b"STAT curr_items " in stats
        else "`stats` does not show that the endpoint has no items"
    )
    return f"{holds}, and flush_all would delete them: use an endpoint without items, or give --allow-destructive"
