"""How a server with a registry starts: options, addresses, refusals."""

import socket
from typing import Any

import pytest

import understudy
from broker.options import OptionError
from registry import options
from tests.registry.conftest import RegistryWith
from understudy.errors import StartError


def parsed(text: str, **more_options: list[str]) -> tuple[Any, options.At]:
    """The options of `--schema-registry TEXT`."""
    brokers, own = options.parse({"schema-registry": [text], **more_options})
    assert own.at is not None
    return brokers, own.at


def test_it_listens_where_the_brokers_do_or_at_its_own_address() -> None:
    """A port is opened where the brokers listen; a host and a port are opened there."""
    assert parsed("8081")[1] == ("127.0.0.1", 8081)
    assert parsed("8081", host=["0.0.0.0"])[1] == ("0.0.0.0", 8081)
    assert parsed("[::1]:0")[1] == ("::1", 0)
    assert parsed("localhost:81")[1] == ("localhost", 81)


@pytest.mark.parametrize("text", ["", "x", ":8081", "70000", "-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    """One sentence that names the option."""
    with pytest.raises(OptionError, match="--schema-registry"):
        parsed(text)


def test_without_its_libraries_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its libraries the registry names the extra to install before it opens anything."""
    monkeypatch.setattr(options, "find_spec", lambda _name: None)
    with pytest.raises(OptionError, match=r"pip install 'understudy-kafka\[schema-registry\]'"):
        parsed("0")


def test_the_topic_is_there_from_the_start(registry_with: RegistryWith) -> None:
    """One partition, compacted; a topic of that name on the command line is left as it is."""
    topic = registry_with().server.control("GET", "/v1/topics/_schemas")
    assert (len(topic["partitions"]), topic["configs"]) == (1, {"cleanup.policy": "compact"})
    broker_options, _ = parsed("0", topic=["_schemas:1:cleanup.policy=compact,retention.ms=-1"])
    assert [dict(each.configs) for each in broker_options.topics] == [
        {"cleanup.policy": "compact", "retention.ms": "-1"}
    ]


def test_a_launched_cluster_knows_its_registry() -> None:
    """As the fixtures start one; without the option there is no address."""
    with understudy.start(schema_registry=0) as kafka:
        assert kafka.schema_registry_url == kafka.registry.show().url
    with understudy.start() as kafka:
        assert kafka.schema_registry_url == ""


def test_a_port_that_is_taken_is_named() -> None:
    """With the option that chooses another one."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(StartError, match=rf"port {port} of --schema-registry is taken"):
            understudy.start(schema_registry=port)
