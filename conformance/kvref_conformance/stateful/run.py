"""How hypothesis runs inside a case: quietly, at the endpoint's pace, from a given seed."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.stateful import run_state_machine_as_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hypothesis.database import ExampleDatabase
    from hypothesis.stateful import RuleBasedStateMachine
    from hypothesis.strategies import SearchStrategy

# Without `explain`, which runs an example hundreds of times for remarks that no report shows.
PHASES: Final = (Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink)
# Targets take half of the examples: with 60 of them, 5 of 100 seeds missed a planted defect, and none without targets.
TARGETED: Final = 200


def run_machine(machine: type[RuleBasedStateMachine], examples: settings, start: object) -> None:
    """Run a state machine.

    Args:
        machine: the class; an example database distinguishes classes by their names.
        examples: what `example_settings` returns.
        start: seed.

    Raises:
        what the machine raises for its smallest failing example, and what hypothesis raises.
    """
    with _remove_folder_afterwards():
        run_state_machine_as_test(seed(start)(machine), settings=examples)


def run_examples(
    name: str, draws: SearchStrategy[Any], test: Callable[[Any], None], examples: settings, start: object
) -> None:
    """Run a test with examples of a strategy.

    Args:
        name: distinguishes tests in an example database.
        draws: the examples.
        test: raises for a failing one.
        examples: what `example_settings` returns.
        start: seed.

    Raises:
        what the test raises for the smallest failing example, and what hypothesis raises.
    """

    def run(example: Any) -> None:
        test(example)

    # An example database knows tests by their source. Hypothesis itself does this for state machines.
    vars(run)["_hypothesis_internal_add_digest"] = name.encode()
    with _remove_folder_afterwards():
        examples(seed(start)(given(draws)(run)))()  # seed, applied last, would take the database away


def example_settings(examples: int, database: Path | ExampleDatabase | None = None, **more: Any) -> settings:
    """Return the settings of a run.

    Args:
        examples: maximum number of examples.
        database: failing examples of earlier runs, which are tried first, or their folder; None for none.
        more: further settings of hypothesis, in place of these.
    """
    if isinstance(database, Path):
        database = DirectoryBasedExampleDatabase(database)
    own: dict[str, Any] = {
        "max_examples": examples,
        "derandomize": False,  # as hypothesis has it where CI is set: neither seed nor database would count
        "deadline": None,
        "database": database,
        "print_blob": False,
        "phases": [phase for phase in PHASES if phase != Phase.target or examples >= TARGETED],
        "report_multiple_bugs": False,
        "verbosity": Verbosity.quiet,
        # The endpoint sets the pace; everything else hypothesis warns of would be a fault of the strategies.
        "suppress_health_check": [HealthCheck.too_slow],
    }
    return settings(**own | more)


@contextmanager
def _remove_folder_afterwards() -> Iterator[None]:
    """Keep what hypothesis caches of the modules under test out of the user's working directory."""
    with TemporaryDirectory() as folder:
        set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            set_hypothesis_home_dir(None)
