"""What follows a case: is the endpoint still there, does the case break again, and which file shows it."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kvref_conformance.cases import all_cases
from kvref_conformance.judging.conversation import render
from kvref_conformance.judging.verdict import CRASH, FAILS, FLAKY, HANG, TRIED, base
from kvref_conformance.steps import Send
from kvref_conformance.triage import replay_file
from kvref_conformance.triage.repeat import Repeats, waits

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kvref.addresses import SocketAddress
    from kvref_conformance.case import Case
    from kvref_conformance.judging.judge import Judge
    from kvref_conformance.judging.verdict import Verdict

REPLAYS: Final = "replays"
_CREDENTIAL: Final = re.compile(r"^(mysql://[^:@/]*):[^@/]*@")
LONGEST_BY_HAND: Final = 400


class Aftermath:
    """Looks after each case of a run.

    Args:
        judge: tries cases again.
        repeats: how often, and how long.
        folder: of the report, where the replay files go, instead of those of an earlier run; None for none.
        words: with which `kvref replay` reaches the endpoint.
    """

    def __init__(self, judge: Judge, repeats: Repeats, folder: Path | None, words: Sequence[str] = ()) -> None:
        self._judge = judge
        self._words = words
        self._repeats = repeats
        self._folder = folder
        self._cases = {case.id: case for case in all_cases()}
        for left in folder.glob(f"{REPLAYS}/*.json") if folder is not None else ():
            left.unlink()

    def know(self, case: Case) -> None:
        """Take note of a case that is none of the suite's but the user's own."""
        self._cases[case.id] = case

    def of(self, record: Verdict, *, known: bool) -> Verdict:
        """Return a verdict with what was found out afterwards: crash, hang or flaky, how often, and the replay file.

        Args:
            record: of a case that was just tried.
            known: the user's own list names it, so that nothing is learnt by trying it again.
        """
        if record.verdict not in TRIED:
            return record
        case = record.script or self._cases[base(record.case)]
        # A generated case has noticed it itself, in the conversation that ended the endpoint, and perhaps gone on.
        lost = record.verdict == CRASH or (record.script is None and self._judge.liveness.is_lost())
        broken = record.verdict == FAILS and any(not exchange.passed for exchange in record.conversation)
        if lost and record.verdict != CRASH:
            record = self._crashed(record, case)
        elif broken and record.conversation[-1].note.startswith("hang"):
            record = replace(record, verdict=HANG)
        if known or not (lost or broken):
            return record
        if case.steps and not (self._judge.liveness.ended or self._judge.budget.spent()):
            # What was generated is worth its time: there are few of them, and no other case shows the same.
            repeats = self._repeats if record.script is None else Repeats(self._repeats.times)
            repeated = repeats.of(self._breaks(case, lost=lost), waits=record.verdict == HANG or waits(case))
            word = FLAKY if repeated.flaky and record.verdict == FAILS else record.verdict
            record = replace(record, verdict=word, repeated=str(repeated))
        return self._with_file(record, case)

    def _breaks(self, case: Case, *, lost: bool) -> Callable[[float], bool]:
        """Return what tries the case again; of a crash the endpoint must be lost again."""

        def breaks(slower: float) -> bool:
            if self._judge.liveness.ended:
                return False
            broken = self._judge.breaks(case, slower)
            gone = self._judge.liveness.is_lost()
            if gone:
                self._judge.liveness.bring_back(case.id)
            return gone if lost else broken

        return breaks

    def _crashed(self, record: Verdict, case: Case) -> Verdict:
        how = self._judge.liveness.bring_back(record.case)
        reason = record.reason or self._judge.statement_of(case)
        text = record.text or self._judge.explain(case, render(record.conversation) if record.conversation else "")
        return replace(record, verdict=CRASH, reason=reason, text=f"{text}\nthe endpoint was gone afterwards; it {how}")

    def _with_file(self, record: Verdict, case: Case) -> Verdict:
        lines = [f"repeated: {record.repeated}"] if record.repeated else []
        if self._folder is not None and case.steps:
            path = self._folder / REPLAYS / f"{record.case}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            end = self._judge.endpoint
            about = {"endpoint": end.where, "version": end.version}
            path.write_text(replay_file.as_json(case, end.profile, record, about), encoding="utf-8")
            lines.append(f"again: {shlex.join(['kvref', 'replay', str(path), *self._words])}")
        if by_hand := _by_hand(record, case):
            lines.append(f"by hand: {by_hand} | {_netcat(self._judge.endpoint.address)}")
        return replace(record, text="\n".join([record.text, *lines]))


def replay_words(options: Namespace, where: str) -> list[str]:
    """Return the words with which `kvref replay FILE` tries a case again as this run has tried it.

    Args:
        options: of the run.
        where: address of the endpoint.
    """
    if options.again is not None:
        return shlex.split(options.again)
    words = [where]
    if options.sql is not None:
        # A report must not have the password: the command takes it from the environment.
        words += ["--sql", _CREDENTIAL.sub(r"\1@", options.sql)]
    for name in ("reload", "restart"):
        if getattr(options, name) is not None:
            words += [f"--{name}", getattr(options, name)]
    return [*words, "--allow-destructive"] if options.allow_destructive else words


def _netcat(address: SocketAddress) -> str:
    return shlex.join(["nc", "-U", address] if isinstance(address, str) else ["nc", *map(str, address)])


def _by_hand(record: Verdict, case: Case) -> str:
    """Return a shell command that prints what was sent, where that is text on one connection and short."""
    sent = "".join(exchange.sent for exchange in record.conversation)
    text_only = all(isinstance(step, Send) and not step.binary and step.on == "a" for step in case.steps)
    if not text_only or not 0 < len(sent) <= LONGEST_BY_HAND:
        return ""
    escaped = "".join(c if c.isascii() and (c.isalnum() or c in " @._-") else f"\\{ord(c):03o}" for c in sent)
    return f"printf '{escaped}'".replace("\\015\\012", "\\r\\n")
