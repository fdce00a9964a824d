"""Messages as the console and `records read --decode` show them: written by the serializers of confluent-kafka."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.wrappers_pb2 import Int64Value

import understudy
from tests.conftest import BrokerWith
from tests.registry.conftest import Rest
from understudy.cli import main
from understudy.client import Cluster, connect
from understudy.errors import StartError
from understudy.results import Decoded, Record

EXACT = 2**63 - 1
ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"},{"name":"amount","type":"long"}]}'
SIDES = {side: SerializationContext("t", side) for side in (MessageField.KEY, MessageField.VALUE)}


@pytest.fixture
def kafka(registry: Rest) -> Cluster:
    """The cluster beside the registry, with a topic t."""
    cluster = connect(str(registry.server.process.ready.control_url))
    cluster.topics.create("t")
    return cluster


@pytest.fixture
def client(registry: Rest) -> Iterator[SchemaRegistryClient]:
    """A client of the registry."""
    with SchemaRegistryClient({"url": registry.url}) as registry_client:
        yield registry_client


def send(kafka: Cluster, value: bytes | None, key: bytes | None = None, headers: Any = None) -> None:
    """One record."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("t", value, key, headers=headers)
    assert producer.flush(60) == 0


def read(kafka: Cluster) -> Record:
    """The last record, decoded."""
    return kafka.topics["t"].partitions[0].records(decode=True)[-1]


def value_of(kafka: Cluster) -> Decoded:
    """What its value decodes to."""
    decoded = read(kafka).value_decoded
    assert decoded is not None
    return decoded


def test_avro_is_decoded_with_its_id_and_subject(kafka: Cluster, registry: Rest, client: SchemaRegistryClient) -> None:
    """Key and value, each by its own schema; numbers of 64 bits are exact. Without `decode` nothing is."""
    key = AvroSerializer(client, '"long"')(7, SIDES[MessageField.KEY])
    value = AvroSerializer(client, ORDER)({"id": "a", "amount": EXACT}, SIDES[MessageField.VALUE])
    send(kafka, value, key)
    record = read(kafka)
    assert record.key_decoded == Decoded("7", "AVRO", 0, 1, None, ("t-key version 1",), registry.url)
    wanted = f'{{"id": "a", "amount": {EXACT}}}'
    assert record.value_decoded == Decoded(wanted, "AVRO", 0, 2, None, ("t-value version 1",), registry.url)
    assert record.value == value
    plain = kafka.topics["t"].partitions[0].records()[-1]
    assert (plain.key_decoded, plain.value_decoded) == (None, None)


def test_json_schema_and_protobuf_are_decoded(kafka: Cluster, client: SchemaRegistryClient) -> None:
    """Protobuf by the message that its indexes name."""
    schema = '{"title": "Order", "type": "object", "properties": {"id": {"type": "string"}}}'
    send(kafka, JSONSerializer(schema, client)({"id": "ä"}, SIDES[MessageField.VALUE]))
    decoded = value_of(kafka)
    assert (decoded.type, decoded.json, decoded.problem) == ("JSON", '{"id": "ä"}', None)
    other = SerializationContext("u", MessageField.VALUE)
    send(kafka, ProtobufSerializer(Int64Value, client)(Int64Value(value=EXACT), other))
    decoded = value_of(kafka)
    assert (decoded.type, decoded.problem, decoded.subjects) == ("PROTOBUF", None, ("u-value version 1",))
    assert json.loads(str(decoded.json)) in (str(EXACT), {"value": str(EXACT)})


def test_a_schema_that_refers_to_another_one_is_decoded(kafka: Cluster, client: SchemaRegistryClient) -> None:
    """By the version that it refers to; the subject of the topic comes first."""
    client.register_schema("money", Schema('{"type":"fixed","name":"shop.Money","size":2}', "AVRO"))
    text = '{"type":"record","name":"Order","fields":[{"name":"price","type":"shop.Money"}]}'
    schema = Schema(text, "AVRO", [SchemaReference("shop.Money", "money", 1)])
    client.register_schema("another-value", schema)
    send(kafka, AvroSerializer(client, schema)({"price": b"ab"}, SIDES[MessageField.VALUE]))
    decoded = value_of(kafka)
    assert (decoded.json, decoded.subjects) == ('{"price": "ab"}', ("t-value version 1", "another-value version 1"))


def test_what_cannot_be_decoded_has_a_reason(kafka: Cluster, registry: Rest, client: SchemaRegistryClient) -> None:
    """An unknown id; data that are cut; data that another schema wrote. The bytes are in the record as ever."""
    send(kafka, b"\0\0\0\0\x63data")
    decoded = value_of(kafka)
    assert (decoded.magic, decoded.schema_id, decoded.json) == (0, 99, None)
    assert decoded.problem == f"the registry at {registry.url} has no schema 99"
    written = AvroSerializer(client, ORDER)({"id": "abc", "amount": 1}, SIDES[MessageField.VALUE])
    assert written is not None
    send(kafka, written[:-2])
    assert str(value_of(kafka).problem).startswith("it does not match its Avro schema: ")
    assert read(kafka).value == written[:-2]
    send(kafka, written + b"more")
    assert value_of(kafka).problem == "it does not match its Avro schema: 4 bytes are left over"
    send(kafka, b"plain text", b"\0\0")
    assert (read(kafka).key_decoded, read(kafka).value_decoded) == (None, None)
    send(kafka, None)
    assert read(kafka).value_decoded is None


def test_after_a_reset_an_id_is_that_of_the_new_schema(kafka: Cluster, client: SchemaRegistryClient) -> None:
    """Ids begin again at 1, so nothing of before may be kept."""
    send(kafka, AvroSerializer(client, '"long"')(7, SIDES[MessageField.VALUE]))
    assert value_of(kafka).json == "7"
    kafka.reset()
    kafka.topics.create("t")
    with SchemaRegistryClient({"url": kafka.registry.show().url}) as fresh:
        send(kafka, AvroSerializer(fresh, '"string"')("x", SIDES[MessageField.VALUE]))
    decoded = value_of(kafka)
    assert (decoded.schema_id, decoded.json) == (1, '"x"')


def test_ctl_and_http_have_the_same(
    kafka: Cluster, registry: Rest, client: SchemaRegistryClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """The query is `decode=true`; a column of the shell shows the schemas, and why something was not decoded."""
    send(kafka, AvroSerializer(client, '"long"')(7, SIDES[MessageField.VALUE]), b"\0\0\0\0\x63x")
    command = ["ctl", "records", "read", "t", "0", "--control", str(registry.server.process.ready.control_url)]
    assert main([*command, "--decode"]) == 0
    *_, heads, row = capsys.readouterr().out.splitlines()
    assert heads.split() == ["OFFSET", "TIMESTAMP", "KEY", "VALUE", "TRANSACTIONAL", "CONTROL", "SCHEMA"]
    assert " 7 " in row
    assert f"key: schema 99: the registry at {registry.url} has no schema 99; value: AVRO, schema 1, t-value" in row
    assert main(command) == 0
    assert "SCHEMA" not in capsys.readouterr().out
    (record,) = registry.server.control("GET", "/v1/topics/t/partitions/0/records?decode=true")["records"]
    assert record["value_decoded"]["json"] == "7"
    (record,) = registry.server.control("GET", "/v1/topics/t/partitions/0/records")["records"]
    assert record["value_decoded"] is None


def test_references_under_many_names_are_expanded_once(kafka: Cluster, registry: Rest) -> None:
    """Thirty schemas that each refer to the one before under two names have a thousand million ways."""
    registry.register("s0", {"type": "integer"}, "JSON")
    for at in range(1, 31):
        references = [{"name": f"{side}{at}.json", "subject": f"s{at - 1}", "version": 1} for side in "ab"]
        either = {"anyOf": [{"$ref": each["name"]} for each in references]}
        schema_id = registry.register(f"s{at}", either, "JSON", references=references)
    send(kafka, b"\0" + schema_id.to_bytes(4, "big") + b"7")
    decoded = value_of(kafka)
    assert (decoded.json, decoded.problem, decoded.subjects) == ("7", None, ("s30 version 1",))


def test_a_reference_may_name_its_context(kafka: Cluster, registry: Rest) -> None:
    """A schema of another context than the one that refers to it."""
    registry.register(":.other:money", {"type": "fixed", "name": "Money", "size": 2})
    registry.register(":.team:first", '"int"')
    reference = {"name": "Money", "subject": ":.other:money", "version": 1}
    order = {"type": "record", "name": "Order", "fields": [{"name": "price", "type": "Money"}]}
    assert registry.register(":.team:t-value", order, references=[reference]) == 2
    send(kafka, b"\0\0\0\0\2ab")
    decoded = value_of(kafka)
    assert (decoded.json, decoded.problem, decoded.subjects) == ('{"price": "ab"}', None, (":.team:t-value version 1",))


# --- schemas of other places -----------------------------------------------------------------------------------------


def test_schemas_of_another_registry_decode_too(registry: Rest, client: SchemaRegistryClient) -> None:
    """By its URL. A registry that does not answer is the reason, once for all messages of a page."""
    written = AvroSerializer(client, '"long"')(7, SIDES[MessageField.VALUE])
    with understudy.start(topics=["t"], schema_registry_url=registry.url) as other:
        send(other, written)
        assert value_of(other) == Decoded("7", "AVRO", 0, 1, None, ("t-value version 1",), registry.url)
    with understudy.start(topics=["t"], schema_registry_url="http://127.0.0.1:9") as other:
        send(other, written)
        decoded = value_of(other)
        assert (decoded.schema_id, decoded.json) == (1, None)
        assert str(decoded.problem).startswith("the registry at http://127.0.0.1:9 does not answer: ")


def test_schemas_of_files_decode_what_has_no_id(tmp_path: Path) -> None:
    """Each of its topic and side; what does not fit has a reason."""
    (tmp_path / "order.avsc").write_text(ORDER)
    (tmp_path / "key.json").write_text('{"type": "integer"}')
    keys, values = [f"{tmp_path}/key.json"], [f"t={tmp_path}/order.avsc"]
    with understudy.start(topics=["t", "u"], key_schema=keys, value_schema=values) as kafka:
        send(kafka, b"\x02a\x06", b"12")
        record = read(kafka)
        assert record.value_decoded is not None
        assert (record.value_decoded.json, record.value_decoded.magic) == ('{"id": "a", "amount": 3}', None)
        assert record.value_decoded.source == f"{tmp_path}/order.avsc"
        assert record.key_decoded is not None
        assert record.key_decoded.json == "12"
        send(kafka, b"\x02a\x06", b'"x"')
        record = read(kafka)
        assert record.key_decoded is not None
        assert record.key_decoded.problem == "it does not match its JSON schema: 'x' is not of type 'integer'"
        kafka.topics["u"].write("\x02a\x06")
        (other,) = kafka.topics["u"].partitions[0].records(decode=True)
        assert other.value_decoded is None


def test_a_file_that_is_no_schema_stops_the_start(tmp_path: Path) -> None:
    """In one sentence, before anything is opened; the same for what is no URL."""
    (tmp_path / "order.avsc").write_text("{}")
    with pytest.raises(StartError, match="the schema cannot be used"):
        understudy.start(value_schema=[f"{tmp_path}/order.avsc"])
    with pytest.raises(StartError, match=r"--key-schema .*none\.avsc: .*No such file"):
        understudy.start(key_schema=[f"{tmp_path}/none.avsc"])
    for url in ("localhost", "http://[::1", "http://localhost:port"):
        with pytest.raises(StartError, match=r"with code 1: understudy serve: \S+ is not the URL of a registry"):
            understudy.start(schema_registry_url=url)


def test_a_server_without_schemas_shows_the_id_and_what_is_missing(broker_with: BrokerWith) -> None:
    """Of what begins as serializers of a registry begin it; text is text."""
    kafka = connect(str(broker_with(topics=["t:1"]).process.ready.control_url))
    kafka.topics["t"].write({"key": "text", "value": b"\0\0\0\0\7data"})
    (record,) = kafka.topics["t"].partitions[0].records(decode=True)
    assert record.key_decoded is None
    assert record.value_decoded is not None
    assert (record.value_decoded.magic, record.value_decoded.schema_id) == (0, 7)
    assert str(record.value_decoded.problem).startswith(
        "the server has no schemas; start it with --schema-registry PORT"
    )


def test_a_schema_id_in_a_header_is_found(kafka: Cluster, client: SchemaRegistryClient) -> None:
    """As newer serializers write it. Our registry has no GUIDs, which is the reason that is shown for one."""
    client.register_schema("t-value", Schema('"long"', "AVRO"))
    send(kafka, b"\x0e", headers=[("__value_schema_id", b"\0\0\0\0\1")])
    decoded = value_of(kafka)
    assert (decoded.magic, decoded.schema_id, decoded.json) == (0, 1, "7")
    send(kafka, b"\x0e", headers=[("__value_schema_id", b"\1" + bytes(15) + b"\1")])
    decoded = value_of(kafka)
    assert (decoded.magic, decoded.schema_guid) == (1, "00000000-0000-0000-0000-000000000001")
    assert "has no schema 00000000-" in str(decoded.problem)


@pytest.mark.parametrize(
    ("data", "text", "problem"),
    [(rb'"\ud800"', '"\ufffd"', None), (b"[" * 100_000, None, "it is nested too deep")],
    ids=["half a character", "nested"],
)
def test_an_odd_value_leaves_the_page_readable(
    kafka: Cluster, registry: Rest, data: bytes, text: str | None, problem: str | None
) -> None:
    """What UTF-8 does not have, and what no reader of JSON takes: a reason at the record, and the others are shown."""
    registry.register("t-value", {}, "JSON")
    send(kafka, b"\0\0\0\0\1" + data)
    assert (value_of(kafka).json, value_of(kafka).problem) == (text, problem)
    send(kafka, b"\0\0\0\0\1" + b"7")
    page = kafka.topics["t"].partitions[0].records(decode=True)
    assert [each.value_decoded and each.value_decoded.json for each in page] == [text, "7"]
