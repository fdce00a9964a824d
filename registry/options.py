"""Options of a server with a registry: those of the brokers, and the registry's address."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import NamedTuple

from broker import options as of_brokers
from broker.options import OptionError, ServeOptions, TopicOption
from broker.settings.endpoints import EndpointError, port_number

OPTION = "--schema-registry"
TOPIC = "_schemas"
"""Topic with the registry's state; the default of Confluent's `kafkastore.topic`."""
_LIBRARIES = ("avro", "grpc_tools", "jsonschema")


class At(NamedTuple):
    """Address on which the registry listens; port 0 means a free one."""

    host: str
    port: int


class Options(NamedTuple):
    """Address of the registry, if there is one, and the schemas with which messages are decoded."""

    at: At | None
    url: str | None
    files: tuple[tuple[str, str], ...]
    """Side, and ``[TOPIC=]FILE``."""


def parse(arguments: Mapping[str, Sequence[str]]) -> tuple[ServeOptions, Options]:
    """Parse the options of the brokers, with the topic `_schemas` if there is a registry, and those of the registry.

    Raises:
        OptionError: an option is invalid, or a library is not installed; the message is one sentence.
    """
    options = of_brokers.parse(arguments)
    files = tuple((side, text) for side in ("key", "value") for text in arguments.get(f"{side}-schema", ()))
    url = of_brokers.last(arguments, "schema-registry-url")
    if "schema-registry" not in arguments:
        return options, Options(None, url, files)
    check_installed()
    text = arguments["schema-registry"][-1]
    host, colon, port = text.rpartition(":")
    try:
        number = port_number(port, OPTION)
    except EndpointError as error:
        raise OptionError(str(error)) from error
    if colon and not host:
        raise OptionError(f"{OPTION} needs [HOST:]PORT, not {text!r}")
    at = At(host.strip("[]") or of_brokers.last(arguments, "host") or "127.0.0.1", number)
    return with_topic(options), Options(at, url, files)


def check_installed() -> None:
    """Raise OptionError unless the libraries of the schema formats are installed."""
    if any(find_spec(name) is None for name in _LIBRARIES):
        raise OptionError(f"{OPTION} needs the extra schema-registry: pip install 'understudy-kafka[schema-registry]'")


def with_topic(options: ServeOptions) -> ServeOptions:
    """Add the topic, which then exists after start and resets: one compacted partition, as Confluent's creates it."""
    if any(topic.name == TOPIC for topic in options.topics) or options.read_only:
        return options
    topic = TopicOption(TOPIC, 1, {"cleanup.policy": "compact"})
    return replace(options, topics=(*options.topics, topic))
