"""The tools of libmemcached as an adapter of `kvref conform-client`: one process and one connection for a call.

A file has the name of its key. memccat requests several keys one by one, so that there is no `get_multi`. The tools
have no option for the timeout; libmemcached waits 5 seconds for a reply.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MISS = re.compile(r"(Could not find key|Error occurred).*: (NOT FOUND|NOT STORED|CONNECTION DATA EXISTS)")


class CannotError(Exception):
    """There is no tool for a call."""


class Tools:
    """Runs the tools against one server.

    Args:
        folder: for files.
        server: HOST:PORT.
        options: of each tool.
    """

    def __init__(self, folder: Path, server: str, options: list[str]) -> None:
        self._folder, self._options = folder, [f"--servers={server}", *options]

    def run(self, tool: str, *words: str) -> bool:
        """Return whether a tool succeeds, False if it says that there is no row.

        Raises:
            RuntimeError: it fails otherwise.
        """
        done = subprocess.run(
            [tool, *self._options, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        output = done.stderr.decode("utf-8", "backslashreplace").strip()
        if done.returncode and not all(map(MISS.match, output.splitlines())):
            raise RuntimeError(f"{tool} ends with {done.returncode}: {output}"[:200])
        return done.returncode == 0

    def get(self, key: str) -> str | None:
        """Return the value of a key."""
        file = self._folder / "..value"
        file.unlink(missing_ok=True)
        found = self.run("memccat", f"--file={file}", "--", key)
        return file.read_bytes().decode("utf-8", "backslashreplace") if found else None

    def store(self, mode: str, key: str, value: str) -> bool:
        """Return whether a value is stored."""
        name = key.encode()
        if not 0 < len(name) < 256 or name in {b".", b"..", b"..value"} or b"/" in name or b"\0" in name:
            raise CannotError("a key is the name of a file")
        file = self._folder / key
        file.write_bytes(value.encode())
        try:
            return self.run("memccp", f"--{mode}", "--", str(file))
        finally:
            file.unlink()

    def call(self, name: str, *given: object) -> object:
        """Make one call."""
        if name == "get":
            return self.get(*given)
        if name in {"set", "add", "replace"}:
            return self.store(name, *given)
        if name == "delete":
            return self.run("memcrm", "--", *given)
        if name == "touch":
            return self.run("memctouch", f"--expire={given[1]}", "--", given[0])
        raise CannotError(f"no tool for {name}")


def options_of(protocol: str, given: dict[str, object]) -> list[str]:
    """Return the options of each tool; credentials need the binary protocol."""
    binary = ["--binary"] if protocol == "binary" else []
    if lack := given.keys() - ({"credentials"} if binary else set()):
        raise CannotError(f"no option {min(lack)}")
    user, password = given.get("credentials", ("", ""))
    return [*binary, *([f"--username={user}", f"--password={password}"] if user else [])]


def result(tools: Tools | None, name: str, given: list[object]) -> dict[str, object]:
    """Return the result of one call as it is printed."""
    try:
        return {"returned": tools.call(name, *given)}
    except CannotError as call:
        return {"cannot": str(call)}
    except (RuntimeError, OSError, ValueError) as error:
        return {"raised": str(error)}


def main() -> None:
    """Make the calls that standard input lists: arguments --calls PROTOCOL TIMEOUT."""
    output = subprocess.run(["memcstat", "--version"], capture_output=True, text=True, check=False)
    version = re.search(r"libmemcached v([\d.]+)", output.stdout + output.stderr)
    head = {"client": "libmemcached tools", "version": version[1] if version else "unknown", "timeout": 5}
    print(json.dumps(head | {"runtime": f"Linux {os.uname().release.partition('-')[0]}"}), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        tools = None
        for line in sys.stdin:
            name, *given = json.loads(line)
            if name == "connect":
                host, port, options = [*given, {}][:3]
                try:
                    tools = Tools(Path(folder), f"{host}:{port}", options_of(sys.argv[2], options))
                    done: dict[str, object] = {"returned": True}
                except CannotError as option:
                    done = {"cannot": str(option)}
            else:
                done = result(tools, name, given)
            print(json.dumps(done), flush=True)


main()
