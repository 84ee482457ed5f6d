"""`kvref record --proxy` and `kvref replay` of recorded traffic: options, files and results."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Final

import click

from kvref import profiles
from kvref.addresses import connect, parse_address
from kvref.errors import KvrefError, SuiteError
from kvref_conformance.traffic import show
from kvref_conformance.traffic.mask import MIN_SECRET, Mask
from kvref_conformance.traffic.modelled import ModelServer
from kvref_conformance.traffic.proxy import Proxy, run
from kvref_conformance.traffic.recorder import Recorder, Source
from kvref_conformance.traffic.replay import duration, read, replay
from kvref_conformance_cli.options import is_address

if TYPE_CHECKING:
    from pathlib import Path

    from kvref.addresses import SocketAddress

ANSWER_SECONDS: Final = 5.0
_SAFE: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+-")


def record(listen: str, server: str, out: Path | None, mask_key: Path | None) -> int:
    """Record the traffic of clients that connect to a proxy, until SIGINT or SIGTERM.

    Args:
        listen: address of the proxy.
        server: address of the endpoint.
        out: file to make.
        mask_key: file with the secret that masks keys and values; None to record them.

    Returns:
        The exit code: 0, or 1 if some connections were not recorded as a whole.

    Raises:
        KvrefError: an address or a file cannot be used.
    """
    if out is None:
        raise KvrefError("--proxy needs a file for the recording: add --out FILE")
    if not is_address(server):
        raise KvrefError(f"{server}: --proxy LISTEN is followed by the address of the server, HOST:PORT or unix:PATH")
    logging.basicConfig(format="%(message)s")
    address = parse_address(server).socket_address
    where = parse_address(listen).socket_address
    mask = None if mask_key is None else Mask(_secret(mask_key))
    source = Source(server, _version(address), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    try:
        # Never over an earlier recording.
        with out.open("x", encoding="utf-8") as file:
            recorder = Recorder(file, source, mask)
            proxy = Proxy(address, recorder)
            run(proxy, where, lambda own: click.echo(f"recording: {own} -> {server}, stop with Ctrl-C", err=True))
    except FileExistsError:
        raise KvrefError(f"{out} exists: give --out another name, or remove it") from None
    except OSError as error:
        raise KvrefError(f"cannot record: {error.filename or listen}: {error.strerror or error}") from error
    counts = proxy.counts
    click.echo(f"{out}: {recorder.steps} steps of {counts.connections} connections in {recorder.parts} parts")
    if counts.unrecorded or counts.unreachable:
        click.echo(f"not recorded as a whole: {counts.unrecorded} connections; refused: {counts.unreachable}")
    return 1 if counts.unrecorded or counts.unreachable else 0


def replay_file(path: Path, server: SocketAddress, file: Path | None, *, timed: bool) -> int:
    """Replay recorded traffic and print the differences.

    Args:
        path: of the recording.
        server: address of the endpoint.
        file: for the result in JSON.
        timed: keep the recorded times.

    Returns:
        The exit code: 0 no difference, 1 some.

    Raises:
        KvrefError: the recording cannot be read or the endpoint cannot be reached.
    """
    try:
        result = replay(read(path), server, timed=timed)
    except SuiteError as error:
        raise KvrefError(str(error)) from error
    click.echo(show.text(result))
    if file is not None:
        file.write_text(json.dumps(show.as_json(result), indent=1) + "\n", encoding="utf-8")
    return 1 if result.counts else 0


def replay_on_model(path: Path, profile: str, file: Path | None) -> int:
    """Replay recorded traffic on the reference model and print the differences.

    Args:
        path: of the recording.
        profile: name of the model's profile.
        file: for the result in JSON.

    Returns:
        The exit code: 0 no difference, 1 some.

    Raises:
        KvrefError: the recording cannot be read.
    """
    try:
        lasts = duration(read(path))
    except SuiteError as error:
        raise KvrefError(str(error)) from error
    with ModelServer(profiles.load(profile), lasts) as server:
        return replay_file(path, server.address, file, timed=False)


def _secret(file: Path) -> bytes:
    try:
        secret = file.read_bytes().strip()
    except OSError as error:
        raise KvrefError(f"{file}: {error.strerror or error}") from error
    if len(secret) < MIN_SECRET:
        raise KvrefError(f"{file}: a secret of at least {MIN_SECRET} bytes is needed: openssl rand -hex 32 > {file}")
    return secret


def _version(address: SocketAddress) -> str:
    """Return the key for the endpoint's replies: `server-` and what it replies to `version`, or `server-unknown`."""
    try:
        with connect(address, ANSWER_SECONDS) as connection:
            connection.sendall(b"version\r\n")
            words = connection.recv(200).decode("latin-1").split()
    except OSError as error:
        raise KvrefError(f"cannot reach the server: {error.strerror or error}") from error
    text = "".join(char for char in words[1] if char in _SAFE) if words[:1] == ["VERSION"] and words[1:] else ""
    return f"server-{text or 'unknown'}"
