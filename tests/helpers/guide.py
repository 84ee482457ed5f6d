"""A guide in Markdown as its reader meets it: commands in one shell, from the first line on, and what they print."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PARTS = re.compile(
    r"^## (?P<section>[^\n]*)$"
    r"|(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<kind>sh|text)\n(?P<text>.*?)^```$"
    r"|^```\{literalinclude\} (?P<source>\S+)\n(?::language: \w+\n)?:caption: (?P<name>\S+)\n```$",
    re.MULTILINE | re.DOTALL,
)
INSTALLS = "it installs packages"
_DOCS = Path(__file__).parents[2] / "docs"
# The pages of a migration from the plugin, in the order in which an operator follows them.
MIGRATION = (_DOCS / "how-to" / "migrate-from-the-plugin.md", _DOCS / "how-to" / "migrate-to-a-newer-mysql.md")
# What their readers look up: replies by command and by client.
AFTER_THE_PLUGIN = _DOCS / "reference" / "after-the-plugin.md"
_END = "--- end of the block"


@dataclass
class Block:
    """Commands of one section, the output that is shown behind them (None: none is), and why they are not run."""

    section: str
    commands: str
    shown: str | None = None
    reason: str | None = None


def blocks(text: str, folder: Path | None = None) -> list[Block]:
    """Return the commands of a guide in their order; an included program is the command that writes it.

    Args:
        text: the guide.
        folder: of the guide; None: it includes nothing.
    """
    found: list[Block] = []
    section, end = "", 0
    for part in _PARTS.finditer(text):
        if part["section"] is not None:
            section = part["section"]
        elif part["kind"] == "sh":
            found.append(Block(section, part["text"], reason=part["reason"]))
        elif part["source"] is not None:
            assert folder is not None
            program = (folder / part["source"]).read_text(encoding="utf-8")
            found.append(
                Block(section, f"cat > {part['name']} <<'END OF {part['name']}'\n{program}END OF {part['name']}\n")
            )
        elif not text[end : part.start()].strip():
            found[-1].shown = part["text"]
        end = part.end()
    return found


def migration() -> str:
    """Return the text of the pages of a migration from the plugin, in their order."""
    return "\n".join(page.read_text(encoding="utf-8") for page in MIGRATION)


def fits(shown: str, output: str) -> bool:
    """Return whether an output matches the page; `…` is any text, alone on its line any lines; blanks are ignored."""
    pattern = ""
    for line in _lines(shown):
        words = re.escape(line).replace("…", "[^\n]*")
        pattern += "(?:[^\n]*\n)*" if line == "…" else f"{words}\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(output))) is not None


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


class Shell:
    """One bash, which ends at the first command that fails; to be closed, with all that it started.

    Args:
        folder: where it begins.
        environment: in addition to this process's.
        enter: words that run bash elsewhere, in a place where its first folder is `folder`.
    """

    def __init__(self, folder: Path, environment: dict[str, str], enter: Sequence[str] = ()) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [*enter, "bash", "-eu"], cwd=folder, env={**os.environ, **environment}, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, commands: str) -> str:
        """Run commands and return what they print.

        Raises:
            AssertionError: one of them fails.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        (self._folder / "block.sh").write_text(commands)
        self._process.stdin.write(f". ./block.sh < /dev/null\necho '{_END}'\n")
        self._process.stdin.flush()
        printed = []
        for line in self._process.stdout:
            if line.startswith(_END):
                return "".join(printed)
            printed.append(line)
        raise AssertionError(f"a command fails in\n{commands}\nwhich printed\n{''.join(printed)}")

    def close(self) -> None:
        """End it and what still runs in its background."""
        with suppress(ProcessLookupError):  # a command had failed, and nothing was in the background
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
