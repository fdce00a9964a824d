"""The small client of export and load on listeners with SASL and TLS."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from pipeline.transfer.security import Security
from pipeline.transfer.wire import Cluster, WireError
from tests.ports import free_ports
from tests.serving import Server, start

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
KINDS = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """An encrypted listener that asks for passwords, and the authority that clients trust."""
    folder = tmp_path_factory.mktemp("tls")
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(folder / "authority.pem"))
    ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(folder / "own.pem"))
    (port,) = free_ports(1)
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": folder / "own.pem",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{LOGIN} user_alice="secret";',
    }
    server = Server(start(settings=settings, topics=["t:1"], listeners=[f"SASL_SSL://127.0.0.1:{port}"]))
    admin = AdminClient({"bootstrap.servers": server.addresses[0]})
    for kind in KINDS.values():
        upsertion = UserScramCredentialUpsertion("alice", ScramCredentialInfo(kind, 4096), b"secret")
        admin.alter_user_scram_credentials([upsertion])["alice"].result(60)
    yield f"127.0.0.1:{port}", folder / "authority.pem"
    server.process.stop()


@pytest.mark.parametrize("mechanism", ["PLAIN", *KINDS])
def test_the_right_password_is_let_in_and_another_is_not(secured: tuple[str, Path], mechanism: str) -> None:
    """By each mechanism; the error names the reason."""
    address, authority = secured
    security = Security("SASL_SSL", mechanism, "alice", "secret", str(authority))
    with Cluster(address, security=security) as cluster:
        assert set(cluster.topics) == {"t"}
        assert cluster.producer_id()[0] >= 0
    wrong = Security("SASL_SSL", mechanism, "alice", "wrong", str(authority))
    with pytest.raises(WireError, match="authentication failed"):
        Cluster(address, security=wrong)


def test_a_server_of_an_unknown_authority_is_not_trusted(secured: tuple[str, Path]) -> None:
    """The error names TLS, and no password has been sent."""
    address, _ = secured
    with pytest.raises(WireError, match="TLS failed"):
        Cluster(address, security=Security("SASL_SSL", "PLAIN", "alice", "secret"))
