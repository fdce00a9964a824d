"""Kerberos: principals become users by Kafka's rules, and clients log in with tickets of a real realm."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.access.sasl.kerberos import BadRule, KerberosNames, NoRule
from broker.access.sasl.mechanisms import problem
from broker.settings import BrokerSettings
from tests.broker.access.sasl.realm import REALM, Realm, missing, realm
from tests.clients.drivers import IN_CI, command
from tests.clients.targets import ROOT, kafka_libs
from tests.ports import free_ports
from tests.serving import Server, start
from tests.storage.kafka_tools import need_kafka

HOME = "EXAMPLE.COM"


def name_of(principal: str, *rules: str) -> str:
    """The user's name by these rules."""
    return KerberosNames(rules, lambda: HOME).short_name(principal)


# --- rules (KerberosNameTest, KerberosRuleTest) ----------------------------------------------------------------------

RULES = (
    "RULE:[1:$1](App\\..*)s/App\\.(.*)/$1/g",
    "RULE:[2:$1](App\\..*)s/App\\.(.*)/$1/g",
    "RULE:[1:$1@$0](.*@OTHER.COM)s/@.*//L",
    "RULE:[2:$1@$0](.*@UPPER.COM)s/@.*///U",
    "DEFAULT",
)


@pytest.mark.parametrize(
    ("principal", "name"),
    [
        ("App.service-name/example.com@REALM", "service-name"),
        ("App.service-name@REALM", "service-name"),
        ("user/host@EXAMPLE.COM", "user"),
        ("user@EXAMPLE.COM", "user"),
        ("User@OTHER.COM", "user"),
        ("User/host@UPPER.COM", "USER"),
        ("alone", "alone"),
    ],
)
def test_the_first_rule_that_applies_names_the_user(principal: str, name: str) -> None:
    """By the number of parts, the pattern, the replacement; DEFAULT takes principals of the default realm."""
    assert name_of(principal, *RULES) == name


@pytest.mark.parametrize("principal", ["user@FOREIGN.COM", "a/b/c@EXAMPLE.COM", "user@a@b"])
def test_a_principal_without_a_rule_is_refused(principal: str) -> None:
    """Of a foreign realm, or no principal at all; one of the own realm is accepted."""
    with pytest.raises(NoRule):
        name_of(principal, *RULES)


def test_a_name_that_is_not_simple_is_refused() -> None:
    """What a rule makes has neither host nor realm."""
    with pytest.raises(NoRule, match="Non-simple"):
        name_of("user@EXAMPLE.COM", "RULE:[1:$1@$0]")


@pytest.mark.parametrize("rule", ["default", "DEFAULT/L", "RULE:", "RULE:[1:$1](a)s/x/", "RULE:[1:$1](()s/a/b/"])
def test_a_wrong_rule_is_refused(rule: str) -> None:
    """A rule of names that cannot be parsed keeps the listener from being opened."""
    with pytest.raises(BadRule, match="invalid rule"):
        KerberosNames([rule], lambda: HOME)


# --- a real realm ----------------------------------------------------------------------------------------------------

LOGIN = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
ASK = """
import sys
from kafka import KafkaAdminClient
admin = KafkaAdminClient(bootstrap_servers=sys.argv[1], security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI",
    sasl_kerberos_service_name="kafka", sasl_kerberos_domain_name="localhost")
print(sorted(admin.list_topics()))
"""
GAVE_NO_ANSWER = -1


def need_kerberos() -> None:
    """Skip on a developer's machine without a key distribution centre; fail in CI."""
    if needed := missing():
        if IN_CI:
            pytest.fail(needed)
        pytest.skip(needed)
    command([ROOT / "tests" / "clients" / "setup.sh", "kerberos"])


@pytest.fixture(scope="module")
def kerberized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Realm, Server, str]]:
    """A realm, a cluster with a keytab, and the address of its listener."""
    need_kerberos()
    with realm(tmp_path_factory.mktemp("realm")) as kerberos, pytest.MonkeyPatch.context() as patch:
        for name in ("KRB5_CONFIG", "KRB5RCACHENAME"):
            patch.setenv(name, kerberos.environment[name])
        keytab = kerberos.keytab("kafka/localhost")
        (port,) = free_ports(1)
        settings = {
            "sasl.enabled.mechanisms": "GSSAPI",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ALICE;User:ANONYMOUS",
            "sasl.kerberos.principal.to.local.rules": f"RULE:[1:$1@$0](.*@{REALM})s/@.*///U",
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": (
                f'{LOGIN} keyTab="{keytab}" principal="kafka/localhost@{REALM}";'
            ),
        }
        server = Server(start(settings=settings, listeners=[f"SASL_PLAINTEXT://localhost:{port}"], topics=["t"]))
        yield kerberos, server, f"localhost:{port}"
        server.process.stop()


def ask(environment: dict[str, str], address: str) -> subprocess.CompletedProcess[str]:
    """The topics that kafka-python sees; a client that is not let in may try for longer than anybody waits."""
    command = [sys.executable, "-c", ASK, address]
    try:
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, GAVE_NO_ANSWER, "", "")


@pytest.mark.interop
@pytest.mark.timeout(240)
def test_a_client_with_a_ticket_logs_in(kerberized: tuple[Realm, Server, str]) -> None:
    """As the user that the rules make of its principal: only that one may see topics. Without a ticket it may not."""
    kerberos, _, address = kerberized
    assert "'t'" in ask(kerberos.login("alice"), address).stdout
    assert ask(kerberos.login("bob"), address).stdout.strip() == "[]"
    refused = ask({**kerberos.environment, "KRB5CCNAME": f"FILE:{kerberos.folder}/none"}, address)
    assert (refused.returncode == 0, refused.stdout) == (False, "")


@pytest.mark.interop
def test_the_java_client_logs_in(kerberized: tuple[Realm, Server, str], tmp_path: Path) -> None:
    """With its own keytab; not with a key that the realm does not know."""
    need_kafka()
    kerberos, server, address = kerberized
    keytab = kerberos.keytab("ALICE")

    def run(principal: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "client.properties"
        file.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
            f'sasl.jaas.config={LOGIN} keyTab="{keytab}" principal="{principal}@{REALM}";\n'
        )
        command = [
            "java",
            f"-Djava.security.krb5.conf={kerberos.environment['KRB5_CONFIG']}",
            "-cp",
            f"{kafka_libs()}/*",
        ]
        tool = ["org.apache.kafka.tools.ClusterTool", "cluster-id", "--bootstrap-server", address]
        return subprocess.run(
            [*command, *tool, "--command-config", str(file)], capture_output=True, text=True, check=False, timeout=90
        )

    assert f"Cluster ID: {server.process.ready.cluster_id}" in run("ALICE").stdout
    assert run("mallory").returncode != 0


@pytest.mark.interop
def test_a_listener_without_keys_is_not_opened(tmp_path: Path) -> None:
    """In one sentence, which names the principal."""
    need_kerberos()
    option = "listener.name.inside.gssapi.sasl.jaas.config"
    settings = {option: f'{LOGIN} keyTab="{tmp_path}/none.keytab" principal="kafka/localhost@{REALM}";'}
    answer = problem(BrokerSettings(1, settings), "INSIDE")
    assert answer is not None
    assert "no keys of kafka/localhost" in answer
    assert os.linesep not in answer
