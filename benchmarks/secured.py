"""Rows of a secured listener: TLS with SASL/PLAIN, as clusters in companies use it."""

import dataclasses
import functools
import tempfile
import time
from pathlib import Path

import trustme
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives import serialization

from benchmarks.librdkafka import QUIET
from benchmarks.row import STORING, Figure, FreshRow, Goal, Scale, Values
from benchmarks.targets import CACHE, Kind, kafka, running
from benchmarks.variants import measure_server

_NAME = "bench"
_TIMEOUT_S = 60.0


@functools.cache
def _certificates() -> tuple[Path, Path]:
    """Return the CA certificate, and the server's with its key; they are valid as long as this process lives."""
    folder = Path(tempfile.mkdtemp(prefix="bench-tls-"))
    authority, own = folder / "authority.pem", folder / "own.pem"
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(authority))
    issued = ca.issue_cert("127.0.0.1")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    readable_by_java = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    own.write_bytes(readable_by_java + b"".join(each.bytes() for each in issued.cert_chain_pems))
    return authority, own


def _settings() -> dict[str, str]:
    """Return the broker's settings, by Kafka's names."""
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    users = f'username="{_NAME}" password="{_NAME}" user_{_NAME}="{_NAME}"'
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(_certificates()[1]),
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "ssl.endpoint.identification.algorithm": "",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(_certificates()[0]),
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{login} {users};",
    }


def _understudy(plain: Kind, port: int, folder: Path) -> list[str]:
    """Return Understudy's command, with an additional listener at the port."""
    file = folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in _settings().items()))
    command = plain.command(0, folder)
    return [*command, "--config", str(file), "--listener", f"SASL_SSL://127.0.0.1:{port}"]


def _kafka(port: int, folder: Path) -> list[str]:
    return kafka(port, folder, protocol="SASL_SSL", more=_settings())


def _kfake(port: int, _folder: Path) -> list[str]:
    return [str(CACHE / "kfake"), "-port", str(port), "-tls", str(_certificates()[1])]


def secured(plain: Kind) -> Kind:
    """Return the kind with only a secured listener, and the clients' settings."""
    commands = {"kafka": _kafka, "kfake": _kfake}
    command = commands.get(plain.name, functools.partial(_understudy, plain))
    client = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "PLAIN",
        "sasl.username": _NAME,
        "sasl.password": _NAME,
        "ssl.ca.location": str(_certificates()[0]),
    }
    return dataclasses.replace(plain, command=command, client=client)


def _until_served(bootstrap: str, client: dict[str, str]) -> float:
    """Return the milliseconds until a new client has the metadata: connection, handshake, login."""
    deadline = time.perf_counter() + _TIMEOUT_S
    while True:
        begun = time.perf_counter()
        try:
            AdminClient({"bootstrap.servers": bootstrap, **QUIET, **client}).list_topics(timeout=10)
        except KafkaException:
            if time.perf_counter() > deadline:
                raise
        else:
            return (time.perf_counter() - begun) * 1e3


def _measure(kind: Kind, scale: Scale) -> Values:
    """Log in, then measure as for other servers."""
    with running(secured(kind)) as server:
        client = dict(server.kind.client)
        _until_served(server.bootstrap, client)
        logins = sorted(_until_served(server.bootstrap, client) for _ in range(5))
        latency_us, _, consumed = measure_server(server, scale)
    return {"secured_login": logins[2], "secured_one_in_flight": latency_us, "secured_consume": consumed}


ROWS = (
    FreshRow(
        "secured",
        (
            Figure("secured_login", "TLS and SASL/PLAIN: a client logs in", "ms", "lower", Goal(of_kafka=1.0)),
            Figure("secured_one_in_flight", "... produce one in flight, p50", "us", "lower", Goal(of_kafka=1.0)),
            Figure("secured_consume", "... consume 100 B", "msg/s", goal=Goal(of_kafka=1.0)),
        ),
        _measure,
        targets=STORING,
    ),
)
