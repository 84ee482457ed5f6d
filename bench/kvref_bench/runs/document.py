"""run.json: who measured what, where and on which servers; checked against `run.schema.json`."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import jsonschema
import psutil

from kvref import documents
from kvref.documents import DocumentError
from kvref_bench.errors import BenchError
from kvref_bench.runs import machine, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kvref_bench.runs.records import Peer
    from kvref_bench.scenario.records import Scenario

NAME: Final = "run.json"
# History, newest first:
# 1  the first one.
SCHEMA_VERSION: Final = 1
DATE: Final = "%Y-%m-%dT%H:%M:%SZ"

Document = dict[str, Any]


def new_id() -> str:
    """Name a run: the time in UTC and six letters that no other run has."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + "-" + secrets.token_hex(3)


def begin(scenario: Scenario, peers: Sequence[Peer], argv: list[str], seed: int, **more: Any) -> Document:
    """Describe a run that begins now.

    Args:
        scenario: as resolved.
        peers: every server of the run.
        argv: the command line; folders are taken out of paths.
        seed: of every draw.
        more: `network`: facts; `run_id`.
    """
    spec = asdict(scenario)
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": more.get("run_id") or new_id(),
        "finished": False,
        "stopped": None,
        "began": time.strftime(DATE, time.gmtime()),
        "ended": None,
        "tool": machine.public(machine.tool(argv)),
        "scenario": {
            "name": scenario.name,
            "version": scenario.version,
            "scale": scenario.scale,
            "spec_sha256": scenario.sha256,
            "spec": machine.public(spec),
        },
        "seed_rng": seed,
        "machine": machine.machine(),
        "runtime": machine.runtime(),
        "servers": [server(peer, scenario.table.keys.count) for peer in peers],
        "network": more.get("network", {}),
        "calibration": {},
        "notes": [],
        "warnings": [],
        "points": 0,
        "sha256": {},
    }


def server(peer: Peer, rows: int) -> Document:
    """Describe a server; without the folders of its paths and the name of its machine.

    rows: in its table when a point begins.
    """
    facts: Document = machine.public(asdict(peer))
    facts["variables"] = {name: text for name, text in facts["variables"].items() if name != "hostname"}
    judged = verdict.SQL if peer.address is None else verdict.words(peer.verdict)
    return {**facts, "rows": rows, "judged": judged}


def end(document: Document, stopped: str | None, warnings: list[str], **more: Any) -> Document:
    """Describe the run as over.

    Args:
        document: as it began.
        stopped: why it ended before its last point; None when it did not.
        warnings: of the run as a whole.
        more: `calibration`: facts; `notes`: texts; `peers`: the servers, as they are now.
    """
    rows = document["servers"][0]["rows"]
    return {
        **document,
        "calibration": more.get("calibration", {}),
        "servers": [server(each, rows) for each in more.get("peers") or ()] or document["servers"],
        "finished": True,
        "stopped": stopped,
        "ended": time.strftime(DATE, time.gmtime()),
        "machine": {**document["machine"], "loadavg_after": list(psutil.getloadavg())},
        "notes": list(more.get("notes", ())),
        "warnings": warnings,
    }


def write(folder: Path, document: Document) -> None:
    """Write run.json at once or not at all."""
    validate(folder / NAME, document)
    draft = folder / f".{NAME}"
    draft.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    draft.replace(folder / NAME)


def read(folder: Path) -> Document:
    """Read run.json; raises BenchError for one that is missing, not JSON, of another version or incomplete."""
    path = folder / NAME
    try:
        document = documents.read_json(path)
    except OSError as error:
        raise BenchError(f"{folder}: no such run folder ({error.strerror}); `kvref bench run` makes one") from None
    except DocumentError as error:
        raise BenchError(f"{path} is not JSON ({error}); copy the run folder again, or repeat the run") from None
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version != SCHEMA_VERSION:
        raise BenchError(
            f"{path} has schema_version {version!r}, this kvref reads {SCHEMA_VERSION}: use the kvref that wrote it"
        )
    validate(path, document)
    found: Document = document
    return found


def validate(path: Path, document: Document) -> None:
    """Raise BenchError, naming the first field at fault, unless a document keeps to the schema."""
    schema = json.loads((files(__package__) / "run.schema.json").read_text(encoding="utf-8"))
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(document))
    if error is not None:
        place = "/".join(map(str, error.absolute_path)) or "the document"
        raise BenchError(f"{path}: {place}: {error.message}; copy the run folder again, or repeat the run")


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
