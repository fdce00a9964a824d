"""SCRAM users over HTTP, in Python and in the shell, and clients that log in as them."""

import pytest
from confluent_kafka import KafkaException, Producer

from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.ports import free_ports

SETTINGS = {"sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512", "group.initial.rebalance.delay.ms": 0}


def logs_in(address: str, password: str) -> bool:
    """Whether librdkafka gets through as alice; it may try for longer than a refusal takes."""
    refused: list[str] = []
    producer = Producer({
        "bootstrap.servers": address, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice", "sasl.password": password, "log_level": 0,
        "error_cb": lambda error: refused.append(error.name()),
    })  # fmt: skip
    for _ in range(20):
        try:
            return "t" in producer.list_topics(timeout=1).topics
        except KafkaException:
            producer.poll(0)
            if "_AUTHENTICATION" in refused:
                return False
    raise AssertionError(refused)


def test_a_user_is_set_listed_and_deleted(plane: ControlPlane) -> None:
    """Each password of a mechanism by itself; answers hold neither passwords nor what is made of them."""
    users = plane.kafka.users
    assert plane.http("POST", "/v1/users/bo%2Fb", {"password": "a-secret"}) == {
        "name": "bo/b", "mechanisms": ["SCRAM-SHA-256"]}  # fmt: skip
    users["bo/b"].set("another-secret", mechanism="SCRAM-SHA-512", iterations=8192)
    users["alice"].set("third-secret")
    both = ("SCRAM-SHA-256", "SCRAM-SHA-512")
    assert [(user.name, user.mechanisms) for user in users.list()] == [("alice", both[:1]), ("bo/b", both)]
    assert "SCRAM-SHA-512" in plane.ctl_text("users", "list")
    assert users["bo/b"].delete(mechanism="SCRAM-SHA-256").mechanisms == both[1:]
    assert plane.ctl("users", "delete", "bo/b") == {"name": "bo/b", "mechanisms": []}
    assert [user.name for user in users.list()] == ["alice"]
    plane.http("POST", "/v1/reset")
    assert users.list() == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "sentence"),
    [
        ("POST", "/v1/users/alice", {}, 422, "password"),
        ("POST", "/v1/users/alice", {"password": ""}, 422, "password"),
        ("POST", "/v1/users/alice", {"password": "s", "mechanism": "PLAIN"}, 422, "mechanism"),
        ("POST", "/v1/users/alice", {"password": "s", "iterations": 4095}, 422, "iterations"),
        ("DELETE", "/v1/users/bop", None, 404, "there is no SCRAM user 'bop'; did you mean bob?"),
        ("DELETE", "/v1/users/bob?mechanism=SCRAM-SHA-512", None, 404, "'bob' has no password for SCRAM-SHA-512"),
    ],
)
def test_what_cannot_be_done(
    plane: ControlPlane, method: str, path: str, body: object, status: int, sentence: str
) -> None:
    """One sentence, and the user that there is stays."""
    plane.kafka.users["bob"].set("secret")
    code, problem = plane.refused(method, path, body)
    assert code == status
    assert sentence in problem["detail"]
    assert "secret" not in str(problem)
    assert [user.name for user in plane.kafka.users.list()] == ["bob"]


@pytest.mark.verb("users set", "users list", "users delete")
@pytest.mark.parametrize("as_version", [None, "2.4"])
def test_the_first_user_logs_in(plane_of: ControlPlaneOf, as_version: str | None) -> None:
    """Also where no request can store passwords yet, and by SCRAM alone; a second password replaces the first."""
    (port,) = free_ports(1)
    plane = plane_of(
        as_version=as_version,
        topics=["t:1"],
        listeners=[f"SASL_PLAINTEXT://127.0.0.1:{port}"],
        settings=SETTINGS,
    )
    address = f"127.0.0.1:{port}"
    alice = plane.kafka.users["alice"]
    alice.set("first", mechanism="SCRAM-SHA-512")
    assert logs_in(address, "first")
    alice.set("second", mechanism="SCRAM-SHA-512")
    assert (logs_in(address, "second"), logs_in(address, "first")) == (True, False)
    alice.delete()
    assert plane.kafka.users.list() == []
    assert not logs_in(address, "second")


def test_a_release_whose_metadata_has_no_scram(plane_of: ControlPlaneOf) -> None:
    """A user is refused with Kafka 3.3, whose metadata cannot hold SCRAM credentials, and created with 3.5."""
    plane = plane_of(as_version="3.3")
    code, problem = plane.refused("POST", "/v1/users/alice", {"password": "s"})
    assert (code, "metadata.version is below 11" in str(problem)) == (422, True)
    plane_of(as_version="3.5").kafka.users["alice"].set("s")


def test_users_of_the_command_line_are_there_from_the_start(plane_of: ControlPlaneOf) -> None:
    """And after a reset; a password that was replaced since is as it was at the start."""
    (port,) = free_ports(1)
    plane = plane_of(
        topics=["t:1"],
        listeners=[f"SASL_PLAINTEXT://127.0.0.1:{port}"],
        settings=SETTINGS,
        add_scram=["SCRAM-SHA-512=[name=alice,password=first]", "SCRAM-SHA-256=[name=bob,password=b]"],
    )
    address = f"127.0.0.1:{port}"
    assert logs_in(address, "first")
    plane.kafka.users["alice"].set("second", mechanism="SCRAM-SHA-512")
    plane.kafka.users["bob"].delete()
    assert not logs_in(address, "first")
    plane.http("POST", "/v1/reset")
    assert logs_in(address, "first")
    assert [user.name for user in plane.kafka.users.list()] == ["alice", "bob"]
