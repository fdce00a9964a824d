"""Messages by their schemas in the console, in a headless Chromium; written by the serializers of confluent-kafka."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.wrappers_pb2 import Int64Value

from tests.control.chromium import Page
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]
EXACT = 2**63 - 1
FIELDS = '[{"name":"id","type":"string"},{"name":"note","type":"string"},{"name":"amount","type":"long"}]'
ORDER = f'{{"type":"record","name":"Order","fields":{FIELDS}}}'
PAYMENT = '{"title": "Payment", "type": "object", "properties": {"id": {"type": "string"}}}'


def context(topic: str) -> SerializationContext:
    """Of a topic's values."""
    return SerializationContext(topic, MessageField.VALUE)


def fill(plane: ControlPlane) -> None:
    """Avro with a key, JSON Schema, Protobuf, an id that the registry does not know, and Avro that is cut."""
    producer = Producer({"bootstrap.servers": plane.bootstrap})
    with SchemaRegistryClient({"url": plane.kafka.registry.show().url}) as client:
        key = AvroSerializer(client, '"long"')(7, SerializationContext("t", MessageField.KEY))
        order = {"id": "a-1", "note": "<b>bold</b>", "amount": EXACT}
        avro = AvroSerializer(client, ORDER)(order, context("t"))
        assert avro is not None
        producer.produce("t", avro, key)
        producer.produce("t", JSONSerializer(PAYMENT, client)({"id": "p-2"}, context("payments")))
        producer.produce("t", ProtobufSerializer(Int64Value, client)(Int64Value(value=EXACT), context("counts")))
    producer.produce("t", b"\0\0\0\0\x63\xff\xfedata")
    producer.produce("t", avro[:-3])
    producer.produce("t", b"plain text")
    assert producer.flush(60) == 0


def test_messages_are_shown_by_their_schemas(page: Page, plane_of: ControlPlaneOf) -> None:
    """What they decode to, exactly; type, id, subject and magic byte; or why not, with the bytes."""
    plane = plane_of(topics=["t:1"], schema_registry=0)
    fill(plane)
    for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
        page.look(width, 900, scheme)
        page.open(plane.url, "topics", "t")
        for offset, texts in (
            ("0", (f'"amount": {EXACT}', "<b>bold</b>")),
            ("3", ("not decoded", "00 00 00 00 63 ff fe")),
            ("4", ("not decoded",)),
        ):
            row = page.row(*texts)
            assert row.text.startswith(offset)
            row.find_element("tag name", "button").click()
        text = page.sees("AVRO, id 2", "t-value version 1", "t-key version 1", "Magic byte", "unknown, id 99")
        assert f"Not decoded: the registry at {plane.kafka.registry.show().url} has no schema 99" in text
        assert "0000  00 00 00 00 63 ff fe 64  ....c..d" in text
        assert "Not decoded: it does not match its Avro schema" in text
        page.row('{"id": "p-2"}')
        page.row(str(EXACT))
        page.row("plain text")
        assert page.script("return document.documentElement.scrollWidth") <= width
        assert page.violations() == []
        page.script("document.querySelector('.messages').scrollIntoView()")
        page.keep(f"messages-decoded-{width}-{scheme}")


def test_without_schemas_the_page_names_the_options(page: Page, plane: ControlPlane) -> None:
    """And shows the id and the bytes; text is shown as text."""
    plane.kafka.topics["t"].write({"value": b"\0\0\0\0\7\xff", "partition": 0}, {"value": "text", "partition": 1})
    page.open(plane.url, "topics", "t")
    page.row("not decoded", "00 00 00 00 07 ff").find_element("tag name", "button").click()
    page.sees("unknown, id 7", "Not decoded: the server has no schemas; start it with --schema-registry PORT")
    row = page.row("text")
    row.find_element("tag name", "button").click()
    assert "Not decoded" not in page.row("1 @ 0").text
