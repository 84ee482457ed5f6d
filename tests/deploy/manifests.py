"""The files of `deploy/`, read for the tests: what they start, and with which environment."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


@dataclass
class Stage:
    """One stage of a Dockerfile.

    Args:
        name: after AS, empty without.
        steps: each instruction that changes the image, with its argument: RUN, COPY, ENV, USER.
        last: the last argument of each other instruction, such as CMD.
    """

    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)
    last: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that ENV sets."""
        words = [word for kind, argument in self.steps if kind == "ENV" for word in shlex.split(argument)]
        return dict(word.split("=", 1) for word in words)

    def words(self, kind: str) -> list[str]:
        """Return the words of an instruction in JSON form, such as CMD."""
        found: list[str] = json.loads(self.last[kind][self.last[kind].index("[") :])
        return found


def dockerfile() -> list[Stage]:
    """Return the stages of the Dockerfile."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
    stages: list[Stage] = []
    for line in text.splitlines():
        kind, _, argument = line.partition(" ")
        if not line or line.startswith("#"):
            continue
        if kind == "FROM":
            stages.append(Stage(argument.partition(" AS ")[2]))
        elif kind in ("RUN", "COPY", "ENV", "USER"):
            stages[-1].steps.append((kind, argument))
        else:
            stages[-1].last[kind] = argument
    return stages


def compose() -> dict[str, Any]:
    """Return the services of the compose file."""
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    return found


def kubernetes(kind: str) -> dict[str, Any]:
    """Return the manifest of a kind."""
    documents = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8"))
    (found,) = (each for each in documents if each["kind"] == kind)
    result: dict[str, Any] = found
    return result


def commands() -> Iterator[tuple[str, list[str]]]:
    """Return the file and the arguments of each start of kvref."""
    yield "Dockerfile", dockerfile()[-1].words("CMD")
    for name in ("tables", "kvref"):
        yield f"compose.yaml, {name}", compose()[name]["command"]
    (container,) = kubernetes("Deployment")["spec"]["template"]["spec"]["containers"]
    yield "kubernetes.yaml", container["args"]


def queries() -> Iterator[str]:
    """Return each expression of the alert rules and of the dashboard."""
    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
    for group in rules["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    dashboard = json.loads((DEPLOY / "grafana" / "dashboards" / "kvref.json").read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (variable["query"] for variable in dashboard["templating"]["list"])
