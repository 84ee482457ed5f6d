"""Judge the cases of a few requirements without pytest, on a server whose tables can be reached over SQL.

`kvref conform --self-test` does this with servers that are broken on purpose, and with the correct one.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

from hypothesis import Phase, settings

from kvref.specification.deviations import Deviations
from kvref_conformance import sql
from kvref_conformance.cases import by_chapter
from kvref_conformance.endpoints import endpoint
from kvref_conformance.judging.judge import Judge, new_tag
from kvref_conformance.judging.verdict import FAILS
from kvref_conformance.running.options import DEFAULT_EXAMPLES, DEFAULT_HISTORIES, DEFAULT_SEED
from kvref_conformance.running.run import NEWEST
from kvref_conformance.sql.reload import wait_for_port
from kvref_conformance.sql.settings import Settings
from kvref_conformance.sql.world import World
from kvref_conformance.stateful.generated import judge_generated

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from kvref_conformance.case import Case
    from kvref_conformance.judging.verdict import Verdict
    from kvref_conformance.sql.settings import Restart

# Chance must not decide whether a mutant is found: one run in six of a default length found none in four columns.
TIMES: Final = 4
# A failure need not become small here.
settings.register_profile("trial", phases=[Phase.generate])


@contextmanager
def judging(address: str, store: str, reload: Callable[[], None], restart: Restart) -> Iterator[Judge]:
    """Yield a judge of a server by the profile kvref without any deviation.

    Args:
        address: HOST:PORT or unix:PATH.
        store: DSN of its tables, where the judge makes its own; its file, or the database behind it.
        reload: makes it read its configuration again.
        restart: as the hook `pytest_kvref_restart`.

    Raises:
        CannotJudge: the server or its tables cannot be used.
    """
    target = endpoint.find(address, "kvref")

    def read_again() -> None:
        reload()
        wait_for_port(target.address)

    with closing(sql.connect(store, NEWEST)) as database:
        world = World(database, target, read_again, new_tag())
        world.create()
        again = Settings(target.address, restart, world.clear, database.connect_again)
        yield Judge(target, Deviations([]), world, "", new_tag(), again)


def verdicts(judge: Judge, wanted: Collection[str]) -> list[Verdict]:
    """Judge the cases that name one of some requirements, in the suite's order, up to the first that fails.

    Args:
        judge: as `judging` gives it.
        wanted: ids of requirements.
    """
    before = settings.get_current_profile_name()
    settings.load_profile("trial")
    try:
        return list(_up_to_a_failure(judge, wanted))
    finally:
        settings.load_profile(before)


def _up_to_a_failure(judge: Judge, wanted: Collection[str]) -> Iterator[Verdict]:
    for chapter, cases in by_chapter().items():
        for case in cases:
            if not set(wanted).isdisjoint(case.requirements):
                judged = _verdicts(judge, case, chapter)
                yield from judged
                if judged[-1].verdict == FAILS:
                    return


def _verdicts(judge: Judge, case: Case, chapter: str) -> list[Verdict]:
    if case.steps:
        return [judge.judge(case, chapter)]
    examples = DEFAULT_HISTORIES if chapter == "concurrency" else DEFAULT_EXAMPLES
    return judge_generated(judge, case, chapter, TIMES * examples, DEFAULT_SEED)
