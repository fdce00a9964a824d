"""The serializers of confluent-kafka, with records on the broker and schemas in the registry beside it."""

import base64
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from tests.registry.conftest import Rest

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"},{"name":"amount","type":"long"}]}'
VALUE = SerializationContext("orders", MessageField.VALUE)


@pytest.fixture
def client(registry: Rest) -> Iterator[Callable[[], SchemaRegistryClient]]:
    """A factory of clients that know nothing yet; they are closed after the test."""
    with ExitStack() as opened:
        yield lambda: opened.enter_context(SchemaRegistryClient({"url": registry.url}))


def passed_on(registry: Rest, sent: bytes) -> bytes:
    """A value that went through a topic."""
    servers = ",".join(registry.server.addresses)
    producer = Producer({"bootstrap.servers": servers})
    producer.produce("orders", value=sent)
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    try:
        record = consumer.poll(60)
    finally:
        consumer.close()
    assert record is not None
    assert record.error() is None
    value = record.value()
    assert value is not None
    return value


def test_avro_written_by_one_client_is_read_by_another(
    registry: Rest, client: Callable[[], SchemaRegistryClient]
) -> None:
    """The writer registers its schema; the reader finds it by the id in the value."""
    order = {"id": "a", "amount": 3}
    written = AvroSerializer(client(), ORDER)(order, VALUE)
    assert written[:5] == b"\0\0\0\0\1"
    read: Any = AvroDeserializer(client())(passed_on(registry, written), VALUE)
    assert read == order
    assert registry.get("/subjects") == ["orders-value"]


def test_a_schema_that_breaks_readers_is_refused(client: Callable[[], SchemaRegistryClient]) -> None:
    """BACKWARD is the default: a new field needs a default value."""
    registry_client = client()
    registry_client.register_schema("orders-value", Schema(ORDER, "AVRO"))
    added = ORDER.replace("]}", ',{"name":"note","type":"string"%s}]}')
    with pytest.raises(SchemaRegistryError, match="READER_FIELD_MISSING_DEFAULT_VALUE") as refused:
        registry_client.register_schema("orders-value", Schema(added % "", "AVRO"))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 409)
    assert registry_client.register_schema("orders-value", Schema(added % ',"default":""', "AVRO")) == 2
    assert registry_client.get_latest_version("orders-value").version == 2


def test_json_written_by_one_client_is_read_by_another(
    registry: Rest, client: Callable[[], SchemaRegistryClient]
) -> None:
    """A document that the schema refuses is not sent; the text is stored without blanks."""
    schema = '{"title": "Order", "type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}'
    serialize = JSONSerializer(schema, client())
    with pytest.raises(SerializationError, match="'id' is a required property"):
        serialize({}, VALUE)
    written = serialize({"id": "a"}, VALUE)
    assert written is not None
    read = JSONDeserializer(None, schema_registry_client=client())(passed_on(registry, written), VALUE)
    assert read == {"id": "a"}
    assert registry.get("/schemas/ids/1") == {"schemaType": "JSON", "schema": schema.replace(" ", "")}


def test_protobuf_written_by_one_client_is_read_by_another(
    registry: Rest, client: Callable[[], SchemaRegistryClient]
) -> None:
    """Python sends descriptors in base64; the registry answers texts, and descriptors where they are asked for.

    The file that it imports is registered first, under its name.
    """
    pool = DescriptorPool()
    item = FileDescriptorProto(name="item.proto", package="shop", syntax="proto3")
    item.message_type.add(name="Item").field.add(name="sku", number=1, type=9, label=1)
    order = FileDescriptorProto(name="order.proto", package="shop", syntax="proto3", dependency=["item.proto"])
    field = order.message_type.add(name="Order").field
    field.add(name="id", number=1, type=9, label=1)
    field.add(name="items", number=2, type=11, label=3, type_name=".shop.Item")
    for each in (item, order):
        pool.Add(each)
    order_type = GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    sent = order_type(id="a", items=[{"sku": "x"}])
    written = ProtobufSerializer(order_type, client(), {"use.deprecated.format": False})(sent, VALUE)
    assert written is not None
    deserialize = ProtobufDeserializer(order_type, {"use.deprecated.format": False}, client())
    assert deserialize(passed_on(registry, written), VALUE) == sent
    text = 'syntax = "proto3";\npackage shop;\n\nimport "item.proto";\n\n'
    text += "message Order {\n  string id = 1;\n  repeated .shop.Item items = 2;\n}\n"
    reference = {"name": "item.proto", "subject": "item.proto", "version": 1}
    assert registry.get("/schemas/ids/2") == {"schemaType": "PROTOBUF", "references": [reference], "schema": text}
    serialized = base64.b64decode(registry.get("/schemas/ids/2?format=serialized")["schema"])
    names = [field.name for field in FileDescriptorProto.FromString(serialized).message_type[0].field]
    assert names == ["id", "items"]
    assert registry.register("again", text, "PROTOBUF", references=[reference]) == 2
