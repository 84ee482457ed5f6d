"""`kvref interop`: what it refuses before anything is booted."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from kvref.cli import main


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--client", "no-such-*"], "no client matches no-such-*: choose one of pymemcache, pylibmc-text"),
        (["--write", __file__, "--target", "memcached"], "--write requires a full run"),
        (["--target", "mariadb"], "'mariadb' is not one of"),
    ],
)
def test_what_cannot_be_run_is_reported_at_once(words: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["interop", *words])
    assert result.exit_code == 2
    assert message in result.output
