"""Hazelcast, a distributed map in Java whose members also answer memcached's text protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref_testbed.targets.artifacts import Artifact, fetched
from kvref_testbed.targets.memcached import started
from kvref_testbed.targets.needs import tool
from kvref_testbed.targets.ports import LOOPBACK, free_port

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.run import Run
    from kvref_testbed.targets.target import Endpoint

JAR: Final = Artifact(
    group="com.hazelcast",
    name="hazelcast",
    version="5.7.0",
    classifier="",
    size=21384275,
    sha256="241ec66cea8491787f68c3336f069ac463877af50bdb7676cd9d538f1940dc33",
    packaging="jar",
)
_START_SECONDS: Final = 60.0  # of a JVM on a busy machine
# One member that joins no other, and listens on the loopback interface alone.
_CONFIGURATION: Final = """\
hazelcast:
  network:
    port: {{port: {port}, auto-increment: false}}
    public-address: {host}
    interfaces: {{enabled: true, interfaces: [{host}]}}
    join:
      auto-detection: {{enabled: false}}
      multicast: {{enabled: false}}
    memcache-protocol: {{enabled: true}}
  properties:
    hazelcast.socket.bind.any: false
    hazelcast.phone.home.enabled: false
"""


@dataclass(frozen=True, slots=True)
class Hazelcast:
    """One member of Hazelcast; see `recipe.Recipe` for the fields."""

    name: str = "hazelcast"
    profile: str = "memcached"
    summary: str = "Hazelcast 5.7.0, a distributed map in Java that answers memcached's text protocol"

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Fetch it the first time, write its configuration, start it and wait for its port.

        options: of Java, e.g. `-Xmx1g` or `-Dhazelcast.map.expiry.delay.seconds=1`.
        Raises MissingError without Java or when Maven fails, TargetError when it ends, e.g. because of an option.
        """
        java, jar, port = tool("java"), fetched(JAR, progress), free_port()
        configuration = run.folder / "hazelcast.yaml"
        configuration.write_text(_CONFIGURATION.format(host=LOOPBACK, port=port))
        mine = ["-Xmx256m", "-Djava.net.preferIPv4Stack=true", f"-Dhazelcast.config={configuration}", *options]
        main = ["-cp", str(jar), "com.hazelcast.core.server.HazelcastMemberStarter"]
        return started(run, self.name, [java, *mine, *main], f"{LOOPBACK}:{port}", seconds=_START_SECONDS)
