"""The process of the client under test: a JSON array per call on its standard input, a JSON object per result.

    WORDS... --calls PROTOCOL TIMEOUT           TIMEOUT of the client for each reply, in seconds
    -> {"client": "name", "version": "1.0", "runtime": "Python 3.11"}          once, at the start
    <- ["connect", "127.0.0.1", 11211]          a new client replaces the previous one
    -> {"returned": true}
    <- ["connect", "127.0.0.1", 11211, {"ca": "authority.pem", "credentials": ["user", "password"]}]
    -> {"returned": true}
    <- ["get", "key"]
    -> {"returned": "value"}    or {"raised": "text"}    or {"cannot": "no call get"}

A client whose timeout cannot be set has it, in seconds, in its first line as "timeout".

A miss is null, a refusal (such as NOT_STORED) false. `gets` returns the value and a token for `cas`, `get_multi` an
object of the keys that were found.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import tempfile
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_START_SECONDS: Final = 20.0
_LAST: Final = 300  # characters of standard error that an error shows

Result = dict[str, Any]


class AdapterError(Exception):
    """The process ended, printed something else, or returned nothing in time."""


class Adapter:
    """A running adapter.

    Attributes:
        client, version, runtime: as its first line says.
        timeout: of the client, in seconds.

    Args:
        words: command line without its last arguments.
        protocol: text, binary or meta.
        timeout: of the client, in seconds.
        environment: additional environment variables.

    Raises:
        AdapterError: it does not start.
    """

    def __init__(
        self, words: Sequence[str], protocol: str, timeout: float, environment: Mapping[str, str] | None = None
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        try:
            self._process = subprocess.Popen(
                [*words, "--calls", protocol, f"{timeout:g}"],
                env=os.environ | (environment or {}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                encoding="utf-8",
                errors="backslashreplace",
                bufsize=1,
            )
        except OSError as error:
            self._errors.close()
            raise AdapterError(f"{' '.join(words)}: {error.strerror or error}") from error
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        try:
            head = self._line(_START_SECONDS)
            self.client, self.version, self.runtime = (head[name] for name in ("client", "version", "runtime"))
            self.timeout = float(head.get("timeout", timeout))
        except (AdapterError, KeyError, TypeError, ValueError) as error:
            self.close()
            raise AdapterError(f"{' '.join(words)} does not start: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                # The rest of a call that the process did not read cannot be sent.
                with suppress(BrokenPipeError):
                    stream.close()
        self._errors.close()

    def call(self, call: Sequence[Any], patience: float) -> Result:
        """Make a call and return its result.

        Args:
            call: name and arguments.
            patience: time limit in seconds.

        Raises:
            AdapterError: no result in time, or the process ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(call) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise AdapterError(f"the process ended: {self._last()}") from error
        return self._line(patience)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _line(self, patience: float) -> Result:
        try:
            line = self._lines.get(timeout=patience)
        except queue.Empty as error:
            raise AdapterError(f"no result within {patience:.1f} s") from error
        if line is None:
            raise AdapterError(f"the process ended: {self._last()}")
        try:
            result = json.loads(line)
        except ValueError as error:
            raise AdapterError(f"no JSON: {line[:_LAST]!r}") from error
        if not isinstance(result, dict):
            raise AdapterError(f"no JSON object: {line[:_LAST]!r}")
        return result

    def _last(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "backslashreplace").strip()[-_LAST:]
