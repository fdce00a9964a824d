"""How a verb gets to the control plane and back: addresses, tokens, and what answers in its place."""

import socket
import ssl
from collections.abc import Iterator

import pytest

import understudy
from tests.understudy.fake import FakeControl
from understudy.client import Cluster
from understudy.exam.security import AUTHORITY, CERTIFICATES
from understudy.transport import Address


@pytest.fixture
def control() -> Iterator[FakeControl]:
    """A control plane with a broker."""
    with FakeControl({"GET /v1/cluster": {"cluster_id": "c", "brokers": [{"id": 1, "host": "h", "port": 1}]}}) as fake:
        yield fake


@pytest.fixture
def kafka(control: FakeControl) -> Cluster:
    """The client under test."""
    return Cluster(Address(control.url), ["h:1"])


def test_an_error_that_is_no_problem_document_is_raised_as_it_is(kafka: Cluster, control: FakeControl) -> None:
    """A proxy in between may answer anything."""
    control.answers["GET /v1/health"] = (502, b"<html>bad gateway")
    with pytest.raises(understudy.ControlError, match="<html>bad gateway"):
        kafka.health()


def test_an_unreachable_server_is_an_error_of_its_own(kafka: Cluster, control: FakeControl) -> None:
    """An unreachable server raises an error of its own with the URL in its message."""
    control.close()
    with pytest.raises(understudy.Unreachable, match=f"no control plane answers at {control.url}"):
        kafka.health()


def test_an_answer_that_takes_too_long_is_no_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is there, and may still do what it was asked for."""
    monkeypatch.setattr("understudy.transport.PATIENCE_MS", 50)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(understudy.Unreachable, match=f"no answer from {url} within 0.05 s; the server may"):
            Cluster(Address(url), ["h:1"]).health()


def test_the_token_travels_as_a_bearer_token(control: FakeControl) -> None:
    """The token of --control-token is sent as a bearer token."""
    understudy.connect(control.url, token="secret")
    assert control.headers[-1]["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("answer", [(301, b""), (307, b"elsewhere"), (200, b"<html>welcome")])
def test_what_answers_may_be_no_control_plane(kafka: Cluster, control: FakeControl, answer: tuple[int, bytes]) -> None:
    """A redirection has done nothing, and a page is no answer either."""
    control.answers["POST /v1/retention/run"] = answer
    with pytest.raises(understudy.ControlError) as refused:
        kafka.retention.run()
    assert refused.value.status == answer[0]
    assert answer[1].decode() in str(refused.value)


def gateway() -> tuple[FakeControl, str]:
    """A gateway with TLS, which has the control plane in a folder; its URL."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "broker.pem")
    fake = FakeControl({"GET /kafka/v1/health": {"status": "ok"}}, context)
    return fake, f"{fake.url}/kafka/"


async def test_the_control_plane_may_be_behind_a_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """With TLS, and in a folder: the token is never sent in the clear, and the path is kept."""
    monkeypatch.setenv("SSL_CERT_FILE", AUTHORITY)
    control, url = gateway()
    with control:
        kafka = Cluster(Address(url, "secret"), ())
        assert kafka.health().status == "ok"
        assert (await kafka.aio.health()).status == "ok"
        assert [path for _, path, _ in control.seen] == ["/kafka/v1/health"] * 2
        monkeypatch.setenv("SSL_CERT_FILE", "/dev/null")
        with pytest.raises(understudy.Unreachable, match="certificate"):
            kafka.health()
        with pytest.raises(understudy.Unreachable, match="certificate"):
            await kafka.aio.health()


def test_another_kind_of_url_is_refused() -> None:
    """A URL of another scheme is refused before anything is sent."""
    with pytest.raises(understudy.Unreachable, match="it needs http or https"):
        understudy.connect("unix://socket", token="secret")
