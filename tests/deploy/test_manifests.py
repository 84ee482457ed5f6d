"""The Dockerfile, the compose file, the Kubernetes manifest, the alert rules and the dashboard agree with kvref."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import closing

import click
import pytest
from deploy.manifests import DEPLOY, ROOT, commands, compose, dockerfile, kubernetes, queries
from helpers.http_client import metrics, wait_for_health
from helpers.live import sql_server_or_skip
from helpers.serving import ask, running

from kvref.cli import main
from kvref.server.telemetry.metrics import MEMCACHED_METRICS, METRICS

ENVIRONMENT = ("PATH", "KVREF_MYSQL_PASSWORD")
IMAGE = dockerfile()[-1]


@pytest.mark.parametrize(("place", "words"), [pytest.param(*each, id=each[0]) for each in commands()])
def test_every_command_line_is_valid(place: str, words: list[str]) -> None:
    assert isinstance(main, click.Group)
    command = main.commands[words[0]] if words[0] in main.commands else main.get_command(click.Context(main), words[0])
    assert command is not None
    command.make_context(words[0], words[1:]).close()


def test_every_variable_is_known() -> None:
    serve = main.get_command(click.Context(main), "serve")
    assert serve is not None
    known = {str(each.envvar) for each in serve.params if each.envvar}
    given = {*IMAGE.environment}
    for service in ("tables", "kvref"):
        given |= compose()[service]["environment"].keys()
    (container,) = kubernetes("Deployment")["spec"]["template"]["spec"]["containers"]
    given |= {each["name"] for each in container["env"]}
    assert given - known == {*ENVIRONMENT}


def test_ports_and_user_are_those_of_the_image() -> None:
    environment = IMAGE.environment
    ports = [int(environment[name].rpartition(":")[2]) for name in ("KVREF_LISTEN", "KVREF_METRICS")]
    assert IMAGE.last["EXPOSE"].split() == [str(port) for port in ports]
    assert f":{ports[1]}/healthz" in IMAGE.last["HEALTHCHECK"]
    assert compose()["kvref"]["ports"] == [f"127.0.0.1:{ports[0]}:{ports[0]}"]
    pod = kubernetes("Deployment")["spec"]["template"]["spec"]
    assert [each["containerPort"] for each in pod["containers"][0]["ports"]] == ports
    assert kubernetes("Service")["spec"]["ports"][0]["port"] == ports[0]
    assert ("USER", str(pod["securityContext"]["runAsUser"])) in IMAGE.steps
    assert f"kvref:{ports[1]}" in (DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8")


def test_the_image_gets_what_the_package_is_built_from() -> None:
    copied = {
        word.rstrip("/")
        for stage in dockerfile()
        for kind, argument in stage.steps
        if kind == "COPY" and "--from" not in argument
        for word in argument.split()[:-1]
    }
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[0] == "!"}
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)


def test_alerts_and_dashboard_query_metrics_that_exist() -> None:
    samples = {"up", "instance", "job"}
    for row in (*METRICS.values(), *MEMCACHED_METRICS.values()):
        samples |= {f"{row.name}_bucket"} if row.kind == "histogram" else {row.name}
    used = {name for query in queries() for name in re.findall(r"\b(?:kvref|memcached|process)_\w+", query)}
    assert used
    assert used <= samples


@pytest.mark.live
def test_the_services_of_compose_work_together() -> None:
    services = compose()
    account = (DEPLOY / "mysql" / "account.sql").read_text(encoding="utf-8")
    with sql_server_or_skip("mysql-9.7") as server:
        with closing(server.connect(60)) as connection, connection.cursor() as cursor:
            for statement in re.sub(r"--.*", "", account).split(";")[:-1]:
                cursor.execute(statement)
        address = server.dsn.partition("@")[2].rstrip("/")
        words = {
            name: [sys.executable, "-m", "kvref", *(each.replace("mysql:3306", address) for each in found["command"])]
            for name, found in services.items()
            if name in ("tables", "kvref")
        }
        root = {"KVREF_MYSQL_PASSWORD": ""}  # of the test's server
        for _ in range(2):  # the service runs at each start
            assert subprocess.run(words["tables"], env=root, timeout=60, check=False).returncode == 0
        environment = services["kvref"]["environment"] | {
            "KVREF_LISTEN": "127.0.0.1:0",
            "KVREF_METRICS": "127.0.0.1:0",
        }
        with running(words["kvref"], server.dsn, environment) as served, served.connect() as client:
            wait_for_health(served, 200, "ok")
            assert ask(client, b"set key 0 0 5\r\nvalue\r\n") == b"STORED\r\n"
            assert ask(client, b"get key\r\n") == b"VALUE key 0 5\r\nvalue\r\nEND\r\n"
            assert metrics(served)['memcached_commands_total{command="get",status="hit"}'] == 1
