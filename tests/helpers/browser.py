"""A page as a real browser has it after its scripts ran."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def browser_or_skip() -> str:
    """Return the browser's path; skip the test without one, or fail where CI is set."""
    path = shutil.which("chromium")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("CI is set and chromium is not installed: the page cannot be opened")
        pytest.skip("chromium is not installed: the page cannot be opened")
    return path


def opened(browser: str, page: Path, folder: Path, fragment: str = "") -> str:
    """Return the document of a page; the browser keeps its own files in the folder.

    Fails where a script of the page complains on the console.
    """
    return document(browser, page.as_uri() + fragment, folder)


def document(browser: str, url: str, folder: Path) -> str:
    """Return the document at a URL; the browser keeps its own files in the folder.

    Fails where a script of the page complains on the console.
    """
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'browser'}"]
    command += ["--enable-logging=stderr", "--dump-dom", url]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    complaints = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    assert not complaints, complaints
    return done.stdout
