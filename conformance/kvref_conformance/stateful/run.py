"""How hypothesis is run inside a case: quietly, without files, at the endpoint's pace, from a given seed."""

from __future__ import annotations

from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Verbosity, settings
from hypothesis.configuration import set_hypothesis_home_dir

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def no_folder_left_behind() -> Iterator[None]:
    """Keep what hypothesis caches of the modules under test out of the user's working directory."""
    with TemporaryDirectory() as folder:
        set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            set_hypothesis_home_dir(None)


def example_settings(examples: int, **more: Any) -> settings:
    """Return the settings of a run of so many examples.

    Args:
        examples: how many at most.
        more: further settings of hypothesis.
    """
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        # The endpoint sets the pace; everything else hypothesis warns of would be a fault of the strategies.
        suppress_health_check=[HealthCheck.too_slow],
        **more,
    )
