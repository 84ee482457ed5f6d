"""The journey of a newcomer: the commands of a page, from its first to its last, in one shell."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Final

from documentation.blocks import ROOT
from helpers.guide import INSTALLS, Shell, blocks, fits
from helpers.waiting import until

from kvref_testbed.targets.ports import free_port

# Addresses of the pages. Each journey has its own ports.
ADDRESSES: Final = ("127.0.0.1:11211", "127.0.0.1:9150", "127.0.0.1:8000", "127.0.0.1:5000")
# What a block starts in the background, and where it listens: a reader types the next command after that.
STARTS: Final = {"kvref serve": ADDRESSES[0], "runserver": ADDRESSES[2], "flask ": ADDRESSES[3]}
# The command of SQLite, which not every machine has: one statement, rows as the command prints them.
SQLITE3: Final = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1], isolation_level=None) as file:
    for row in file.execute(sys.argv[2]):
        print("|".join(map(str, row)))
"""


class Journey:
    """A page, with free ports instead of those that it names.

    Args:
        page: its path in the repository.
    """

    def __init__(self, page: str) -> None:
        self._free = {address: f"127.0.0.1:{free_port()}" for address in ADDRESSES}
        text = (ROOT / page).read_text(encoding="utf-8")
        self._blocks = [block for block in blocks(text, (ROOT / page).parent) if block.reason in {None, INSTALLS}]
        self.environment = {
            "COLUMNS": "200",
            "KVREF_LISTEN": self._free[ADDRESSES[0]],
            "KVREF_ADDRESS": self._free[ADDRESSES[0]],
            "FLASK_RUN_PORT": self._free[ADDRESSES[3]].rpartition(":")[2],
        }

    def run(self, shell: Shell, *, install: bool) -> None:
        """Run the commands and compare what they print.

        Args:
            shell: has `environment`.
            install: also run the commands that install packages.
        """
        for block in self._blocks:
            if block.reason == INSTALLS and not install:
                continue
            commands, shown = self._here(block.commands), block.shown and self._here(block.shown)
            printed = shell.run(commands)
            assert shown is None or fits(shown, printed), f"{commands}\nprinted\n{printed}"
            if commands.rstrip().endswith("&"):
                for started, address in STARTS.items():
                    if started in commands:
                        until(lambda place=self._free[address]: _listens(place))

    def _here(self, text: str) -> str:
        for written, own in self._free.items():
            text = text.replace(written, own)
        return text


def _listens(address: str) -> bool:
    host, _, port = address.partition(":")
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


def tools(folder: Path) -> str:
    """Write the commands `python`, `kvref`, `flask` and `sqlite3` into a folder; return the PATH that has them first."""
    folder.mkdir()
    python = sys.executable
    (folder / "rows.py").write_text(SQLITE3)
    commands = {
        "python": python, "kvref": f"{python} -m kvref", "flask": f"{python} -m flask",
        "sqlite3": f"{python} {folder / 'rows.py'}",
    }  # fmt: skip
    for name, words in commands.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
