"""Schemas of keys and values in exports: the ids that the serializers of confluent-kafka write, and what is decoded."""

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema as Registered
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.schema_registry.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from pipeline.transfer.parquet import schema as columns_of
from pipeline.values import formats
from pipeline.values.columns import DECODED, IDS, NO_SCHEMAS, Schemas, with_values
from pipeline.values.formats import SchemaError, decoder, read_file, tried
from pipeline.values.registry import Registry, RegistryError
from pipeline.values.wire_format import FormatError, framed, message_indexes
from tests.conftest import BrokerWith
from tests.pipeline.conftest import Refused
from tests.registry.conftest import Rest
from understudy.cli import main

ORDER: Final = json.dumps({
    "type": "record", "name": "Order", "namespace": "shop", "fields": [
        {"name": "id", "type": "string"},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "share", "type": "double"},
        {"name": "raw", "type": ["null", "bytes"], "default": None},
    ],
})  # fmt: skip
SENT: Final = {"id": "a", "amount": b"\x04\xd2", "at": 1_700_000_000_000, "share": float("nan"), "raw": b"\xff\x00"}
DECODED_ORDER: Final = {"id": "a", "amount": "12.34", "at": "2023-11-14T22:13:20+00:00", "share": "nan", "raw": "ÿ\0"}
PERSON: Final = (
    '{"title": "Person", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}'
)
PROTO: Final = """syntax = "proto3";
package shop;
import "parts/item.proto";
message Other { int32 x = 1; }
message Box { message Lid { string of = 1; } repeated Item items = 1; int64 big_number = 2; }
"""
ITEM: Final = 'syntax = "proto3";\npackage shop;\nmessage Item { string sku = 1; }\n'
GUID: Final = "89791762-2336-4186-9674-299b90a802e2"
VALUE: Final = SerializationContext("orders", MessageField.VALUE)
PEOPLE: Final = SerializationContext("people", MessageField.VALUE)
BOXES: Final = SerializationContext("boxes", MessageField.VALUE)


@pytest.fixture
def registry(broker_with: BrokerWith) -> Rest:
    """A cluster with a schema registry."""
    return Rest(broker_with(schema_registry=0, topics=["orders:1"]))


@pytest.fixture
def client(registry: Rest) -> Iterator[Callable[[], SchemaRegistryClient]]:
    """A factory of clients of the registry."""
    with ExitStack() as opened:
        yield lambda: opened.enter_context(SchemaRegistryClient({"url": registry.url}))


def protobuf_types() -> dict[str, Any]:
    """The messages of PROTO as Protobuf's library has them."""
    pool = DescriptorPool()
    item = FileDescriptorProto(name="parts/item.proto", package="shop", syntax="proto3")
    item.message_type.add(name="Item").field.add(name="sku", number=1, type=9, label=1)
    box = FileDescriptorProto(name="box.proto", package="shop", syntax="proto3", dependency=["parts/item.proto"])
    box.message_type.add(name="Other").field.add(name="x", number=1, type=5, label=1)
    message = box.message_type.add(name="Box")
    message.nested_type.add(name="Lid").field.add(name="of", number=1, type=9, label=1)
    message.field.add(name="items", number=1, type=11, label=3, type_name=".shop.Item")
    message.field.add(name="big_number", number=2, type=3, label=1)
    for each in (item, box):
        pool.Add(each)
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"shop.{name}")) for name in ("Box", "Box.Lid", "Other")}


def avro(make: Callable[[], SchemaRegistryClient], value: Any = SENT) -> bytes:
    """An order as Confluent's serializer writes it."""
    from decimal import Decimal  # noqa: PLC0415 - for this function alone

    written = AvroSerializer(make(), ORDER)({**value, "amount": Decimal("12.34")}, VALUE)
    assert written is not None
    return bytes(written)


def decoded(schemas: Schemas, *values: bytes | None, headers: Any = None, key: bytes | None = None) -> list[Any]:
    """The columns about the schema of some values, JSON as documents."""
    base = columns_of(producers=False)
    rows = [{"topic": "orders", "key": key, "value": value, "headers": headers} for value in values]
    (batch,) = with_values([pa.RecordBatch.from_pylist(rows, base)], schemas)
    assert batch.schema.names == [*base.names, *schemas.columns.names]
    schema_rows = [{name: row[name] for name in schemas.columns.names} for row in batch.to_pylist()]
    return [
        {name: json.loads(text) if name.endswith("json") and text else text for name, text in row.items()}
        for row in schema_rows
    ]


def test_what_serializers_wrote_is_decoded_by_their_registry(
    registry: Rest, client: Callable[[], SchemaRegistryClient]
) -> None:
    """Avro with its logical types, JSON, Protobuf with imports and messages within messages; keys as values."""
    json_written = JSONSerializer(PERSON, client())({"name": "Ada"}, PEOPLE)
    types = protobuf_types()
    boxes = [
        ProtobufSerializer(types[name], client(), {"use.deprecated.format": False})(types[name](**fields), BOXES)
        for name, fields in (
            ("Box", {"items": [{"sku": "x"}], "big_number": 2**60}),
            ("Box.Lid", {"of": "jar"}),
            ("Other", {}),
        )
    ]
    schemas = Schemas(registry.url)
    schemas.check()
    decoded_rows = decoded(schemas, avro(client), json_written, *boxes, None, b"plain", key=avro(client))
    assert [row["value_json"] for row in decoded_rows] == [
        DECODED_ORDER, {"name": "Ada"}, {"items": [{"sku": "x"}], "big_number": str(2**60)}, {"of": "jar"}, {}, None,
        None,
    ]  # fmt: skip
    assert {row["key_json"]["id"] for row in decoded_rows} == {"a"}
    assert [row["value_schema_id"] is not None for row in decoded_rows] == [True] * 5 + [False, False]
    assert {row["value_error"] for row in decoded_rows} | {row["value_schema_guid"] for row in decoded_rows} == {None}


def test_schemas_refer_to_others(registry: Rest, client: Callable[[], SchemaRegistryClient]) -> None:
    """An Avro record of a record of another subject."""
    inner = '{"type": "record", "name": "shop.Item", "fields": [{"name": "sku", "type": "string"}]}'
    outer = '{"type": "record", "name": "shop.Box", "fields": [{"name": "item", "type": "shop.Item"}]}'
    client().register_schema("items", Registered(inner, "AVRO"))
    references = [SchemaReference("shop.Item", "items", 1)]
    number = client().register_schema("boxes-value", Registered(outer, "AVRO", references))
    for _ in ("live", "deleted softly"):
        (row,) = decoded(Schemas(registry.url), b"\0" + number.to_bytes(4, "big") + b"\x02x")
        assert (row["value_json"], row["value_error"]) == ({"item": {"sku": "x"}}, None)
        for subject in ("boxes-value", "items"):
            registry.ask("DELETE", f"/subjects/{subject}")


def test_data_that_do_not_fit_are_rows_with_a_reason(
    registry: Rest, client: Callable[[], SchemaRegistryClient]
) -> None:
    """The export goes on: cut values, bytes behind them, unknown ids, documents that a schema refuses, bad indexes."""
    good = avro(client)
    person = JSONSerializer(PERSON, client())({"name": "Ada"}, PEOPLE)
    other = protobuf_types()["Other"]
    box = ProtobufSerializer(other, client(), {"use.deprecated.format": False})(other(x=5), BOXES)
    assert person is not None
    assert box is not None
    bad = [
        good[:-3], good + b"x", b"\0\0\0\x03\xe7rest", person[:5] + b"{}", person[:5] + b"{",
        box[:5] + b"\x02\x40\x08\x05", box[:5] + b"\x02\x01", box[:6] + b"\xff", box[:5],
    ]  # fmt: skip
    decoded_rows = decoded(Schemas(registry.url), *bad, good)
    assert [row["value_json"] is None for row in decoded_rows] == [True] * len(bad) + [False]
    reasons = ["Avro", "1 bytes are left over", "no schema 999", "'name' is a required", "not JSON"]
    reasons += ["no message", "no message", "Wire format", "indexes"]
    for row, reason in zip(decoded_rows, reasons, strict=False):
        assert reason in row["value_error"], row


class Guids(BaseHTTPRequestHandler):
    """A registry that knows one GUID and one user."""

    def do_GET(self) -> None:
        """Answer the GUID's schema, and an empty list of subjects."""
        status, answer = 404, {"error_code": 40403}
        if self.headers["Authorization"] != "Basic YWRhOnM6M2NyZXQ=":
            status = 401
        elif self.path == "/subjects":
            status, answer = 200, {}
        elif self.path == f"/schemas/guids/{GUID}":
            status, answer = 200, {"schema": '"string"'}  # type: ignore[dict-item]  # text beside the code
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Be quiet."""


@pytest.fixture
def guids() -> Iterator[str]:
    """The address of such a registry, `HOST:PORT`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Guids)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_guid_in_a_header_names_the_schema(guids: str) -> None:
    """As Confluent's own header serializer writes it; the first header of that name counts, and the value is whole."""
    headers: Any = []
    context = SerializationContext("orders", MessageField.VALUE, headers)
    payload = header_schema_id_serializer(b"\x04ab", context, SchemaId("AVRO", guid=GUID))
    listed = [{"key": name, "value": value} for name, value in [*headers, (headers[0][0], b"\0\0\0\0\1")]]
    (row,) = decoded(Schemas(f"http://ada:s%3A3cret@{guids}"), payload, headers=listed)
    assert (row["value_schema_guid"], row["value_schema_id"], row["value_json"]) == (GUID, None, "ab")
    assert (row["key_schema_guid"], row["value_error"]) == (None, None)
    (only,) = decoded(Schemas(is_wanted=True), payload, headers=listed)
    assert only == {**dict.fromkeys(IDS.names), "value_schema_guid": GUID}
    with pytest.raises(RegistryError, match="answers /subjects with 401"):
        Schemas(f"http://{guids}").check()


def test_the_wire_format_is_read_and_nothing_else() -> None:
    """Short data, other first bytes, a header without a value, and an id in a header."""
    assert framed(b"\0\0\0\0\7rest", None, "value") == (7, None, b"rest")
    assert framed(b"\0\xff\xff\xff\xff", [], "key") == (2**32 - 1, None, b"")
    assert [framed(data, None, "value") for data in (b"", b"\0\0\0\0", b"\1" + bytes(20), b"{}")] == [None] * 4
    header = {"key": "__value_schema_id", "value": b"\0\0\0\0\7"}
    assert framed(b"data", [header], "value") == (7, None, b"data")
    assert framed(b"data", [header], "key") is None
    assert framed(b"\0\0\0\0\5x", [{**header, "value": None}], "value") == (5, None, b"x")
    assert framed(b"\0\0\0\0\5x", [{**header, "value": b"\1cut"}], "value") == (5, None, b"x")
    assert message_indexes(b"\0rest") == ([0], b"rest")
    assert message_indexes(b"\x04\x02\x00rest") == ([1, 0], b"rest")
    for bad in (b"", b"\x80", b"\x04\x02", b"\x01", b"\xff" * 9):
        with pytest.raises(FormatError):
            message_indexes(bad)


def test_schemas_of_files_decode_data_with_and_without_ids(tmp_path: Path) -> None:
    """By topic and side, what a registry's serializer wrote and what has no id."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "item.proto").write_text(ITEM)
    (tmp_path / "box.proto").write_text(PROTO)
    (tmp_path / "name.avsc").write_text('"string"')
    (tmp_path / "person.json").write_text(PERSON)
    box = protobuf_types()["Box"](items=[{"sku": "x"}]).SerializeToString()
    for name, value, expected in (
        ("name.avsc", b"\x04ab", "ab"),
        ("person.json", b'{"name": "Ada"}', {"name": "Ada"}),
        ("box.proto#shop.Box", box, {"items": [{"sku": "x"}]}),
        ("box.proto", b"\x08\x05", {"x": 5}),
    ):
        schemas = Schemas(files=dict([read_file(f"orders={tmp_path / name}", "value")]))
        schemas.check()
        prefix = b"\0\0\0\0\7" + (b"\0" if name == "box.proto" else b"\x02\x02" if "proto" in name else b"")
        decoded_rows = decoded(schemas, value, prefix + value, b"\xff")
        assert [row["value_json"] for row in decoded_rows] == [expected, expected, None], name
        assert [row["value_schema_id"] for row in decoded_rows] == [None, 7, None]
        assert decoded_rows[2]["value_error"]
        other = Schemas(files=dict([read_file(f"other={tmp_path / name}", "value")]))
        assert decoded(other, value)[0] == dict.fromkeys([*IDS.names, *DECODED.names])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "", "ends with .avsc, .proto, .json"),
        ("none.avsc", None, "No such file"),
        ("a.avsc", '{"type": "nothing"}', "cannot be used"),
        ("a.avsc", "{", "cannot be used"),
        ("a.json", '{"type": 5}', "cannot be used"),
        ("a.proto", "message", "protoc refuses"),
        ("b.proto", 'syntax = "proto3";', "has no message"),
        (
            "c.proto#X",
            PROTO.replace('import "parts/item.proto";\n', "").replace("repeated Item items = 1; ", ""),
            "cannot be used",
        ),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    """A schema that cannot be used is refused before anything is read."""
    if content is not None:
        (tmp_path / name.partition("#")[0]).write_text(content)
    with pytest.raises(SchemaError, match=message):
        Schemas(files=dict([read_file(str(tmp_path / name), "value")])).check()


@pytest.mark.parametrize(
    ("schema", "data", "why"),
    [
        ({"$ref": "http://example.com/x.json"}, b"{}", "its JSON schema cannot be applied: .*example.com"),
        ({"properties": {"a": {"$ref": "#/definitions/b"}}}, b'{"a": 1}', "its JSON schema cannot be applied"),
        ({"items": [{}], "$ref": "#/items/x"}, b"1", "its JSON schema cannot be applied"),
        ({"multipleOf": 0.5}, b"1" + 400 * b"0", "its JSON schema cannot be applied"),
        ({"type": "number"}, b"NaN", "it is not JSON"),
    ],
)
def test_a_json_schema_that_fails_on_data_is_a_reason(schema: object, data: bytes, why: str) -> None:
    """Registries accept references that they do not follow; the rows beside it are decoded."""
    answer, reason = tried(decoder(formats.Schema(formats.JSON, json.dumps(schema)), framed=True), data)
    assert answer is None
    assert re.match(why, reason or "")


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """The URL of a server that answers one request with these bytes, such as a listener with TLS does."""

    def serve(listener: socket.socket) -> None:
        connection = listener.accept()[0]
        with connection:
            connection.recv(65536)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def test_a_registry_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No URL, no server, one of another protocol; and a missing library is named with its extra."""
    for url in ("localhost:8081", "http://localhost:80x", "http://localhost:99999", "http://[::1:80", "http://a:0"):
        with pytest.raises(RegistryError, match="is not the URL"):
            Registry(url)
    for url in ("http://127.0.0.1:1", "http://a b:80", "http://127.0.0.1:1/a\x7f"):
        with pytest.raises(RegistryError, match="does not answer"):
            Registry(url).check()
    for answer in (b"\x15\x03\x01\0\x02\x02\x16", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[]"):
        with answering(answer) as url, pytest.raises(RegistryError, match="does not answer"):
            Registry(url).check()
    monkeypatch.setitem(formats.LIBRARIES, "AVRO", ("no_such_library",))
    with pytest.raises(SchemaError, match=r"pip install 'understudy-kafka\[values\]'"):
        formats.decoder(formats.Schema("AVRO", '"string"'), framed=False)
    assert NO_SCHEMAS.columns.names == []


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(600)
def test_the_command_exports_columns_of_schemas_and_load_ignores_them(
    registry: Rest, client: Callable[[], SchemaRegistryClient], tmp_path: Path, refused: Refused
) -> None:
    """From a running cluster with its own registry; continued by --append with the same options only."""
    producer = Producer({"bootstrap.servers": registry.server.addresses[0]})
    for value in (avro(client), b"plain", None):
        producer.produce("orders", value, b"k", 0)
    assert producer.flush(60) == 0
    export = ["export", registry.server.addresses[0], str(tmp_path / "out"), "--topic", "orders"]
    decoding = ["--schema-registry", registry.url]
    assert "does not answer" in refused(*export, "--schema-registry", "http://127.0.0.1:1")
    assert main([*export, *decoding]) == 0
    producer.produce("orders", avro(client, {**SENT, "id": "b"}), b"k", 0)
    assert producer.flush(60) == 0
    assert "other options (values)" in refused(*export, "--append", code=1)
    assert main([*export, *decoding, "--append"]) == 0
    assert read(tmp_path / "out", "value_schema_id, value_json->>'id', value_error") == [
        (1, "a", None), (None, None, None), (None, None, None), (1, "b", None),
    ]  # fmt: skip
    assert main(["load", str(tmp_path / "out"), "--to", str(tmp_path / "data")]) == 0
    assert main([*export[:2], str(tmp_path / "ids"), *export[3:], "--schema-ids", "--where", "offset < 2"]) == 0
    assert read(tmp_path / "ids", "value_schema_id") == [(1,), (None,)]


def read(folder: Path, columns: str) -> list[tuple[Any, ...]]:
    """Columns of an export by DuckDB."""
    result = duckdb.execute(f"SELECT {columns} FROM '{folder}/*.parquet' ORDER BY \"offset\"")  # noqa: S608
    return result.fetchall()
