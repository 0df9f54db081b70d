"""A real Apache Kafka for tests and examples: one KRaft node on 127.0.0.1 in a temporary folder.

The jars are those named in kafka/pom.xml (tests/support/jars.py). `EVENLAG_KAFKA=4.4.0` starts another version, with
Java clients and tools of the same version.
"""

import contextlib
import os
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.support.jars import fetched, find_java, run

TESTS = Path(__file__).resolve().parents[1]
CERTIFICATE = TESTS / "tls" / "certificate.pem"  # of 127.0.0.1, signed by itself, until 2126
LOCKED_KEY = TESTS / "tls" / "locked_key.pem"  # its key, under the password "locked"
REVOKED = TESTS / "tls" / "revoked.pem"  # a list that revokes it
POM = TESTS / "kafka" / "pom.xml"
RECORDED = re.findall(r"<artifactId>kafka_2\.13</artifactId>\s*<version>(.+)</version>", POM.read_text())[0]
VERSION = os.environ.get("EVENLAG_KAFKA", RECORDED)
CACHE = TESTS.parent / ".cache" / f"kafka-{VERSION}"
JAVA_OPTIONS = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
CLUSTER_ID = "evenlagTestsAndExample"  # 22 characters: a UUID in base64, which may not begin with a hyphen
START_LIMIT = 60.0  # seconds
STOP_LIMIT = 20.0  # seconds

# Of every broker: small, and quick to settle. The interval of KIP-848 heartbeats may not be below its minimum (5 s by
# default), so both are lowered.
COMMON = """\
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=2097152
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=500
group.consumer.heartbeat.interval.ms=500
group.consumer.min.heartbeat.interval.ms=500
"""

PROPERTIES = """\
process.roles=broker,controller
node.id=1
broker.rack={rack}
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listeners=PLAINTEXT://127.0.0.1:{plain},SASL://127.0.0.1:{sasl},TLS://127.0.0.1:{tls},OAUTH://127.0.0.1:{oauth},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},SASL://127.0.0.1:{sasl},TLS://127.0.0.1:{tls},OAUTH://127.0.0.1:{oauth}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SASL_SSL,OAUTH:SASL_PLAINTEXT
listener.name.sasl.sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
listener.name.oauth.sasl.enabled.mechanisms=OAUTHBEARER
listener.name.oauth.oauthbearer.sasl.jaas.config=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";
listener.name.tls.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.tls.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.tls.ssl.keystore.type=PEM
listener.name.tls.ssl.keystore.location={keystore}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
log.dirs={data}
"""

CLUSTER_PROPERTIES = """\
process.roles={roles}
node.id={node}
{rack}
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners={listeners}
advertised.listeners={advertised}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector
log.dirs={data}
"""


@dataclass(frozen=True)
class Broker:
    """A running broker: who comes by `bootstrap` may do everything, `user` by the others what ACLs allow.

    By `sasl_bootstrap` a user comes with PLAIN, by `tls_bootstrap` with SCRAM, to a broker that shows `CERTIFICATE`,
    by `oauth_bootstrap` with any token that nobody has signed. `restart` ends it as a crash does, and starts it again
    after some seconds, none by default.
    """

    bootstrap: str
    sasl_bootstrap: str
    tls_bootstrap: str
    oauth_bootstrap: str
    restart: Callable[..., None]
    log: Path
    user: str = "reader"
    password: str = "reader-password"
    rack: str = "rack-1"


def sasl(broker: Broker) -> dict[str, str]:
    """Return the client settings with which `user` logs in at `sasl_bootstrap`."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": broker.user,
        "sasl.password": broker.password,
    }


@contextlib.contextmanager
def running_broker(jar: Path | None = None, properties: str = "") -> Iterator[Broker]:
    """Start Kafka, give its address once it serves clients, and stop it and remove its data at the end.

    It loads a jar of plugins, and has more properties, in which `{plain}` stands for the port of its own clients.
    """
    java = find_java()
    jars = kafka_jars(java)
    plain, sasl, tls, oauth, controller = free_ports(5)
    process: subprocess.Popen[bytes]

    def start() -> None:
        nonlocal process
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*command, "kafka.Kafka", str(config)], stdout=output, stderr=subprocess.STDOUT, cwd=folder
            )
        _wait_until_ready(process, broker.bootstrap, log)

    def restart(after: float = 0.0) -> None:
        process.kill()
        process.wait()
        time.sleep(after)
        start()

    with tempfile.TemporaryDirectory(prefix="evenlag-kafka-") as name:
        folder = Path(name)
        config, log = folder / "server.properties", folder / "broker.log"
        broker = Broker(*(f"127.0.0.1:{port}" for port in (plain, sasl, tls, oauth)), restart, log)
        keystore = folder / "keystore.pem"
        keystore.write_text((TESTS / "tls" / "key.pem").read_text() + CERTIFICATE.read_text())
        config.write_text(
            COMMON
            + (PROPERTIES + properties).format(
                plain=plain,
                sasl=sasl,
                tls=tls,
                oauth=oauth,
                keystore=keystore,
                controller=controller,
                user=broker.user,
                password=broker.password,
                data=folder / "data",
                rack=broker.rack,
            )
        )
        command = [str(java), *JAVA_OPTIONS, "-cp", f"{jars}/*:{jar or ''}"]
        run([*command, "kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", str(config)])
        try:
            start()
            yield broker
        finally:
            _stop(process)


class Node:
    """A broker of a cluster, which can be killed and started again."""

    def __init__(self, command: Sequence[str], folder: Path, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._command, self._folder = command, folder

    def start(self, brokers: int = 1) -> None:
        """Start it, and wait until it knows this number of brokers."""
        log = self._folder / "broker.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=subprocess.STDOUT, cwd=self._folder)
        _wait_until_ready(self._process, self.bootstrap, log, brokers)

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        _stop(self._process)


@contextlib.contextmanager
def running_nodes(racks: Sequence[str]) -> Iterator[list[Node]]:
    """Start a broker in each rack, the first of them the controller; replicas may be read.

    A broker whose rack is "" has none. Brokers are numbered from 1 on. Anybody may do everything.
    """
    java = find_java()
    jars = kafka_jars(java)
    controller, *ports = free_ports(len(racks) + 1)
    command = [str(java), "-Xmx256m", *JAVA_OPTIONS[1:], "-cp", f"{jars}/*"]
    nodes: list[Node] = []
    with tempfile.TemporaryDirectory(prefix="evenlag-kafka-") as name, contextlib.ExitStack() as running:
        for number, (rack, port) in enumerate(zip(racks, ports, strict=True), 1):
            folder = Path(name) / str(number)
            folder.mkdir()
            config = folder / "server.properties"
            plain = f"PLAINTEXT://127.0.0.1:{port}"
            first = number == 1
            config.write_text(
                COMMON
                + CLUSTER_PROPERTIES.format(
                    node=number,
                    rack=f"broker.rack={rack}" if rack else "",
                    controller=controller,
                    roles="broker,controller" if first else "broker",
                    listeners=f"{plain},CONTROLLER://127.0.0.1:{controller}" if first else plain,
                    advertised=plain,
                    data=folder / "data",
                )
            )
            run([*command, "kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", str(config)])
            nodes.append(Node([*command, "kafka.Kafka", str(config)], folder, f"127.0.0.1:{port}"))
            running.callback(nodes[-1].stop)
            nodes[-1].start(brokers=number)
        yield nodes


@contextlib.contextmanager
def running_cluster(racks: Sequence[str]) -> Iterator[str]:
    """Start brokers as `running_nodes` does, and give their addresses."""
    with running_nodes(racks) as nodes:
        yield ",".join(node.bootstrap for node in nodes)


def kafka_jars(java: Path) -> Path:
    """The folder of Kafka's jars, filled on first use."""
    return kafka_fetched(POM, CACHE.name, java)


def kafka_fetched(pom: Path, name: str, java: Path) -> Path:
    """The folder `.cache/NAME` with the jars of a pom.xml, those of Kafka of the version that tests run with."""
    if VERSION == RECORDED:
        return fetched(pom, name, java)
    with tempfile.TemporaryDirectory(prefix="evenlag-pom-") as folder:
        other = Path(folder) / "pom.xml"
        other.write_text(pom.read_text().replace(f"<version>{RECORDED}</version>", f"<version>{VERSION}</version>"))
        return fetched(other, name, java)


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that were free a moment ago."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _wait_until_ready(process: "subprocess.Popen[bytes]", bootstrap: str, log: Path, brokers: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200})
    end = time.monotonic() + START_LIMIT
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(KafkaException):
            if len(admin.list_topics(timeout=1.0).brokers) >= brokers:
                return
    raise RuntimeError(f"Kafka {VERSION} did not start:\n{log.read_text()[-3000:]}")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
