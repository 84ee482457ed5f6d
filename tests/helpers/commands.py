"""Commands of kvref, run to their end in a process of their own: `kvref("doctor", "--store", dsn)`; and in this one: `refusal`.

The process is forked by one that has loaded the command already (`warm`). Tests of the start itself, of signals to a
command, or of what a command imports start an interpreter of their own.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile

from click.testing import CliRunner

from helpers.warm import MEASURED, Warm
from kvref.cli import main

UNLOADED = {"bench"}  # starts threads when it is loaded, which no fork has
OF_INTERPRETER = {"PYTHONPATH"}  # variables that an interpreter reads at its start


def kvref(
    *words: str | Path,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    typed: str = "",
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a command of kvref and return its exit code and what it printed.

    Args:
        words: the command, with its arguments.
        folder: where it runs; by default where the test does.
        environment: all of its variables; by default those of the test.
        typed: its input.
        timeout: seconds after which it is killed.

    Raises:
        subprocess.TimeoutExpired: it did not end in time.
    """
    arguments = ["kvref", *map(str, words)]
    variables = os.environ if environment is None else environment
    if not words or words[0] in UNLOADED or OF_INTERPRETER & variables.keys() or MEASURED & os.environ.keys():
        return subprocess.run(
            [sys.executable, "-m", *arguments], cwd=folder, env=environment, input=typed,
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
    with ExitStack() as stack:
        given, output, errors = (stack.enter_context(TemporaryFile("w+")) for _ in range(3))
        given.write(typed)
        given.seek(0)
        process = Warm(arguments, (given.fileno(), output.fileno(), errors.fileno()), environment, folder)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout)
            raise
        printed = []
        for each in (output, errors):
            each.seek(0)
            printed.append(each.read())
    return subprocess.CompletedProcess(arguments, code, *printed)


def refusal(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command that refuses its arguments in this process; return its exit code and what it printed.

    Raises:
        Exception: what the command raises instead of ending.
    """
    logger = logging.getLogger()
    handlers, level = list(logger.handlers), logger.level
    try:
        result = CliRunner().invoke(main, [*map(str, words)], prog_name="kvref")
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(level)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return subprocess.CompletedProcess([*map(str, words)], result.exit_code, result.stdout, result.stderr)
