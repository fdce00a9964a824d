"""The consumer protocol's bytes are those of kio's schemas, in every version."""

from importlib import import_module
from io import BytesIO
from typing import Any

import pytest
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer

from protocol.consumer_protocol import read_assignment, read_subscription, subscribed_topics, write_assignment


def schema(name: str, version: int) -> Any:
    """kio's module of one version."""
    return import_module(f"kio.schema.consumer_protocol_{name}.v{version}.data")


def written(entity: Any) -> bytes:
    """A version and its fields, as kio writes them."""
    out = BytesIO()
    out.write(entity.__version__.to_bytes(2))
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


@pytest.mark.parametrize("version", sorted(schema_name_map["consumer_protocol_subscription"]))
def test_a_subscription_is_read_as_kio_writes_it(version: int) -> None:
    """Owned partitions since version 1, the rack since version 3."""
    module = schema("subscription", version)
    fields: dict[str, Any] = {"topics": ("foo", "bar"), "user_data": b"x"}
    if version >= 1:
        fields["owned_partitions"] = (module.TopicPartition(topic="foo", partitions=(1, 2)),)
    if version >= 2:
        fields["generation_id"] = 7
    if version >= 3:
        fields["rack_id"] = "r"
    raw = written(module.ConsumerProtocolSubscription(**fields))
    assert subscribed_topics(raw) == frozenset({"foo", "bar"})
    assert subscribed_topics(raw[:-1]) == (None if version == 0 else frozenset({"foo", "bar"}))
    subscription = read_subscription(raw)
    assert subscription is not None
    assert (subscription.version, subscription.topics) == (version, ("foo", "bar"))
    assert subscription.owned == ({"foo": (1, 2)} if version >= 1 else {})
    assert subscription.rack_id == ("r" if version >= 3 else None)


@pytest.mark.parametrize("version", sorted(schema_name_map["consumer_protocol_assignment"]))
def test_an_assignment_is_read_and_written_as_by_kio(version: int) -> None:
    """Reading and writing agree, the version included."""
    module = schema("assignment", version)
    partitions = (module.TopicPartition(topic="foo", partitions=(0, 2)),)
    entity = module.ConsumerProtocolAssignment(assigned_partitions=partitions, user_data=None)
    raw = written(entity)
    assert write_assignment({"foo": [2, 0]}, version) == raw
    assert read_assignment(raw) == ({"foo": (0, 2)}, False)
    read, size = entity_reader(type(entity))(raw, 2)
    assert (read, size) == (entity, len(raw) - 2)
