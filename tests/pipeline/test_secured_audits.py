"""`understudy audit HOST:PORT --follow` through listeners with SASL, TLS, and certificates of clients."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import trustme
from confluent_kafka import Producer

from tests.ports import free_ports
from tests.serving import Server, start
from understudy.cli import main

KINDS: Final = ("SASL_PLAINTEXT", "SASL_SSL", "SSL")
SCRAM: Final = ["SCRAM-SHA-256=[name=alice,password=secret]", "SCRAM-SHA-512=[name=alice,password=secret]"]
STEPS: Final = ["--follow", "0", "--until-finding", "--steps", "20", "--format", "json"]
COUNTED: Final = ["--count-by", "60", "--input", "orders", "--output", "shipped"]
AT_MS: Final = 1_700_000_000_000


class Secured:
    """A cluster whose listeners ask for passwords or certificates, and the files of its clients."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ca, other = trustme.CA(), trustme.CA()
        ca.cert_pem.write_to_path(str(folder / "authority.pem"))
        ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(folder / "broker.pem"))
        for name, authority in (("client", ca), ("stranger", other)):
            certificate = authority.issue_cert("alice")
            certificate.private_key_pem.write_to_path(str(folder / f"{name}.key"))
            certificate.cert_chain_pems[0].write_to_path(str(folder / f"{name}.pem"))
        ports = free_ports(len(KINDS))
        self.addresses = {kind: f"127.0.0.1:{port}" for kind, port in zip(KINDS, ports, strict=True)}
        settings = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": folder / "broker.pem",
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.ssl.ssl.truststore.type": "PEM",
            "listener.name.ssl.ssl.truststore.location": folder / "authority.pem",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
        }
        self.server = Server(
            start(
                settings=settings,
                topics=["orders:2", "shipped:1"],
                listeners=[f"{kind}://{address}" for kind, address in self.addresses.items()],
                add_scram=SCRAM,
            )
        )
        producer = Producer({"bootstrap.servers": self.server.addresses[0]})
        for topic, partition in (("orders", 0), ("orders", 1), ("shipped", 0)):
            producer.produce(topic, b"v", b"k", partition, timestamp=AT_MS)
        assert producer.flush(60) == 0

    def config(self, **settings: str) -> str:
        """The path of a client's properties; in names, `_` is a dot."""
        path = self.folder / "client.properties"
        path.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in settings.items()))
        return str(path)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """One cluster for all of them: audits change nothing."""
    server = Secured(tmp_path_factory.mktemp("secured"))
    yield server
    server.server.process.stop()


def settings_of(secured: Secured, kind: str, **other: str) -> dict[str, str]:
    """What a client of the listener needs; `other` replaces some of it."""
    options = {"security_protocol": kind}
    if kind.startswith("SASL"):
        mechanism = "SCRAM-SHA-256" if kind == "SASL_SSL" else "SCRAM-SHA-512"
        options |= {"sasl_mechanism": mechanism, "sasl_username": "alice", "sasl_password": "secret"}
    if kind.endswith("SSL"):
        options["ssl_truststore_location"] = str(secured.folder / "authority.pem")
    if kind == "SSL":
        options["ssl_certificate_location"] = str(secured.folder / "client.pem")
        options["ssl_key_location"] = str(secured.folder / "client.key")
    return options | other


@pytest.mark.parametrize("kind", KINDS)
def test_an_audit_reads_through_a_secured_listener(
    secured: Secured, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It counts the records of each topic, and finds the input that did not come out."""
    config = ["--client-config", secured.config(**settings_of(secured, kind))]
    code = main(["audit", secured.addresses[kind], *STEPS, *COUNTED, *config])
    lines: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    counted = {each["counted"]: each["records"] for each in lines if "counted" in each}
    assert counted == {"orders": 2, "shipped": 1}
    assert (code, [each["check"] for each in lines if "check" in each]) == (1, ["count-differs"])


@pytest.mark.parametrize(
    ("kind", "other", "message"),
    [
        ("SASL_PLAINTEXT", {"sasl_password": "wrong"}, "authentication failed"),
        ("SASL_SSL", {"sasl_username": "bob"}, "authentication failed"),
        ("SASL_PLAINTEXT", {"security_protocol": "PLAINTEXT"}, "no broker answers"),
        ("SSL", {"ssl_certificate_location": "stranger.pem", "ssl_key_location": "stranger.key"}, "TLS failed"),
        ("SSL", {"ssl_truststore_location": "stranger.pem"}, "TLS failed"),
    ],
)
def test_a_client_that_is_not_let_in_gets_the_reason(
    secured: Secured, kind: str, other: dict[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one sentence, with exit code 2; it does not wait for a cluster that will never let it in."""
    paths = {name: str(secured.folder / value) if name.endswith("location") else value for name, value in other.items()}
    config = ["--client-config", secured.config(**settings_of(secured, kind, **paths))]
    with pytest.raises(SystemExit) as ended:
        main(["audit", secured.addresses[kind], *STEPS, *config])
    answer = capsys.readouterr().err
    assert (ended.value.code, len(answer.splitlines())) == (2, 1)
    assert message in answer
