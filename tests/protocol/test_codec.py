"""Every API and version through our writers and kio's, both ways, and the traps of headers."""

import dataclasses
import io
import shutil
import struct
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, get_args
from uuid import UUID

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.serial._introspect import EntityField, EntityTupleField, classify_field, get_field_tag, is_optional

from protocol.apis import ApiKey
from protocol.codec import (
    BadFrame,
    decode_header,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    message_class,
    request_reader,
    request_writer,
    response_reader,
    response_writer,
)
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreateTopicsRequest
from protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData, ReplicaState
from protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.metadata import MetadataRequest
from protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from protocol.readers import Budget
from protocol.types import Message, field_types
from protocol.version_adapters import OLDER_RESPONSE
from tools import generate_protocol
from tools.schema_fields import python_name

HIDDEN = {52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82}
CASES = [
    (key, suffix, version)
    for key, name in sorted(api_key_map.items())
    if key not in HIDDEN
    for suffix in ("Request", "Response")
    for version in sorted(schema_name_map[name])
]
KNOWN_TO_KIO = [code for code in ErrorCode if code <= max(KioErrorCode)]
INTEGERS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63, "timedelta_i32": 31, "timedelta_i64": 40}
LETTERS = ("", "a", "\x7f", "\u00e9", "\u0800", "\ufffd", "\U0010ffff", " ")
MESSAGES = 12


def load(key: int, suffix: str, version: int) -> type:
    """kio's class of one version."""
    return load_request_schema(key, version) if suffix == "Request" else load_response_schema(key, version)


def integer(chance: Random, least: int, most: int) -> int:
    """One of a range, often at one of its ends or at zero."""
    near = [each for each in (least, most, least + 1, most - 1, 0, 1, -1, 127, 128) if least <= each <= most]
    return chance.choice((chance.randint(least, most), chance.choice(near)))


def single(chance: Random, kind: str) -> Any:
    """A value of a wire type."""
    if kind in INTEGERS:
        return integer(chance, -(2 ** INTEGERS[kind]), 2 ** INTEGERS[kind] - 1)
    if kind.startswith("uint"):
        return integer(chance, 0, 2 ** int(kind[4:]) - 1)
    if kind == "string":
        return "".join(chance.choices(LETTERS, k=chance.randint(0, 5)))
    if kind in ("bytes", "records"):
        return chance.randbytes(chance.randint(0, 9))
    if kind == "bool":
        return chance.random() < 0.5
    if kind == "float64":
        return chance.choice((0.0, -0.0, 1.5, -(2.0**1000), 5e-324, chance.uniform(-1e9, 1e9)))
    if kind == "error_code":
        return chance.choice(KNOWN_TO_KIO)
    if kind == "uuid":
        return chance.choice((None, UUID(int=integer(chance, 1, 2**128 - 1))))
    assert kind == "datetime_i64"
    moment = integer(chance, 0, 2**41)
    return moment - moment % 1000


@cache
def nested_class(owner: type, name: str) -> type:
    """The class of a struct, or of an array's structs, within one of our messages."""
    pending = [field_types(owner)[name]]
    while pending:
        hint = pending.pop()
        if isinstance(hint, type) and issubclass(hint, Message):
            return hint
        pending.extend(get_args(hint))
    raise TypeError(f"{owner.__name__}.{name} holds no struct")


def value_of(chance: Random, field: Any, owner: type) -> Any:
    """A value for one field of our message, in the range of its wire type."""
    shape, kind = classify_field(field), str(field.metadata.get("kafka_type", ""))
    may_be_null = is_optional(field) and get_field_tag(field) is None and kind not in ("uuid", "datetime_i64")
    if may_be_null and chance.random() < 0.3:
        return None
    deeper = isinstance(shape, EntityField | EntityTupleField)
    nested = (shape.type_, nested_class(owner, python_name(field))) if deeper else None
    one = partial(message, chance, *nested) if nested else partial(single, chance, kind)
    return tuple(one() for _ in range(chance.choice((0, 1, 1, 2)))) if shape.is_array else one()


def message(chance: Random, source: type, target: type) -> Any:
    """A message of our class with the fields of one version."""
    return target(**{python_name(each): value_of(chance, each, target) for each in dataclasses.fields(source)})


@pytest.mark.slow
@pytest.mark.parametrize(("key", "suffix", "version"), CASES)
def test_our_writer_writes_what_kio_writes(key: int, suffix: str, version: int) -> None:
    """Random messages of every API and version: our bytes are kio's, and come back equal."""
    source, target = load(key, suffix, version), message_class(key, suffix)
    write = (request_writer if suffix == "Request" else response_writer)(key, version)
    read = (request_reader if suffix == "Request" else response_reader)(key, version)
    kio_read: Any = entity_reader(source)
    kio_write: Any = entity_writer(source)
    chance = Random(f"{key} {suffix} {version}")
    for _ in range(MESSAGES):
        sent = message(chance, source, target)
        parts: list[bytes] = []
        write(parts, sent)
        raw = b"".join(parts)
        again, end = read(bytearray(raw), 0, Budget())
        assert end == len(raw)
        assert again == sent
        entity, _ = kio_read(raw, 0)
        buffer = io.BytesIO()
        kio_write(buffer, entity)
        assert buffer.getvalue() == raw


@pytest.mark.slow
def test_generated_modules_are_current(tmp_path: Path) -> None:
    """The checked-in messages, readers and writers are what the generator makes of kio's schemas; it notices others."""
    files = generate_protocol.generate()
    assert generate_protocol.differing(generate_protocol.TARGET, files) == []
    folder = shutil.copytree(generate_protocol.TARGET, tmp_path / "messages")
    changed = folder / "fetch.py"
    changed.write_text(changed.read_text().replace("at + 16", "at + 17"))
    (folder / "gone.py").touch()
    (folder / "versions.py").unlink()
    assert generate_protocol.differing(folder, files) == ["fetch.py", "gone.py", "versions.py"]


def test_an_older_response_has_the_classes_of_its_fields() -> None:
    """Compiled writers accept no other class, though its fields are the same."""
    topics = [OffsetFetchResponseTopics("t", [OffsetFetchResponsePartitions(0, 5)])]
    response = OffsetFetchResponse(groups=[OffsetFetchResponseGroup("g", topics)])
    OLDER_RESPONSE[ApiKey.OFFSET_FETCH](7, response)
    assert response.topics == (OffsetFetchResponseTopic("t", (OffsetFetchResponsePartition(0, 5),)),)


def test_error_codes_are_kios() -> None:
    """Names, numbers and retriability are the same as in kio's table, which ends before those of 4.4."""
    ours = {(code.name, int(code), code.retriable) for code in KNOWN_TO_KIO}
    assert ours == {(code.name.upper(), int(code), code.retriable) for code in KioErrorCode}


def test_a_null_client_id_is_the_empty_string() -> None:
    """Header v1 with a null client id is served (core CON-12)."""
    frame = encode_request(ApiKey.METADATA, 1, 7, None, MetadataRequest())[4:]
    header = decode_header(frame)
    assert (header.api_key, header.correlation_id, header.client_id) == (3, 7, "")


def test_unknown_tags_in_the_header_are_skipped() -> None:
    """Header v2 with an unknown tagged field (core CON-11)."""
    body = encode_request(ApiKey.METADATA, 9, 7, "c", MetadataRequest())[4:]
    head_size = 8 + 2 + 1
    assert body[head_size] == 0
    frame = body[:head_size] + b"\x01\x2a\x03abc" + body[head_size + 1 :]
    header = decode_header(frame)
    assert header.body_at == head_size + 6
    assert decode_request(frame, header) == decode_request(body, decode_header(body))


@pytest.mark.parametrize(
    "frame",
    [b"", b"\0\3", struct.pack(">hhi", 200, 0, 1) + b"\0\0", struct.pack(">hhih", 3, 1, 1, 50) + b"short",
     struct.pack(">hhih", 3, 9, 1, 0)],
)  # fmt: skip
def test_unreadable_headers_are_bad_frames(frame: bytes) -> None:
    """Too short, unknown api, client id outside the frame, no tags where they must be (core A.2.1)."""
    with pytest.raises(BadFrame):
        decode_header(frame)


def test_a_client_id_that_is_no_utf8_is_read_as_java_reads_it() -> None:
    """Replacement characters, no refusal."""
    header = decode_header(struct.pack(">hhih", 3, 1, 1, 2) + b"\xff\xfe")
    assert header.client_id == "\ufffd\ufffd"


@pytest.mark.parametrize("count", [2**31 - 1, 2**27, -1, -(2**31)])
def test_an_array_longer_than_the_frame_is_refused(count: int) -> None:
    """An array longer than the bytes left, or null where none may be, is refused before memory is allocated for it."""
    frame = encode_request(ApiKey.CREATE_TOPICS, 2, 7, "c", CreateTopicsRequest())[4:]
    header = decode_header(frame)
    assert decode_request(frame, header).topics == ()
    broken = frame[: header.body_at] + struct.pack(">i", count) + frame[header.body_at + 4 :]
    with pytest.raises(BadFrame):
        decode_request(broken, header)


def test_a_cut_body_is_a_bad_frame_and_a_long_one_is_fine() -> None:
    """One byte short cannot be parsed; bytes after the body are ignored (core CON-10)."""
    frame = encode_request(ApiKey.METADATA, 9, 7, "c", MetadataRequest())[4:]
    with pytest.raises(BadFrame):
        decode_request(frame[:-1], decode_header(frame))
    assert decode_request(frame + b"\xff" * 4, decode_header(frame)) == decode_request(frame, decode_header(frame))


def test_an_old_fetch_of_a_follower_leaves_later_ones_as_they_are() -> None:
    """The replica id of a version before 15 is that of its own request, not the default of those without one."""

    def replica_id(version: int, request: FetchRequest) -> int:
        frame = encode_request(ApiKey.FETCH, version, 7, "test", request)[4:]
        read: FetchRequest = decode_request(frame, decode_header(frame))
        return read.replica_state.replica_id

    assert replica_id(14, FetchRequest(replica_id=5)) == 5
    assert replica_id(17, FetchRequest()) == -1
    assert replica_id(17, FetchRequest(replica_state=ReplicaState(5))) == 5


def test_old_find_coordinator_is_seen_in_the_newest_shape() -> None:
    """FindCoordinator v3 has one key; handlers see a list, and answer with one."""
    request = FindCoordinatorRequest(coordinator_keys=("g",))
    frame = encode_request(ApiKey.FIND_COORDINATOR, 3, 1, "c", request)[4:]
    assert decode_request(frame, decode_header(frame)).coordinator_keys == ("g",)
    answer = FindCoordinatorResponse(coordinators=[Coordinator("g", 1, "h", 9092)])
    frame = b"".join(encode_response(ApiKey.FIND_COORDINATOR, 3, 1, answer))[4:]
    assert decode_response(ApiKey.FIND_COORDINATOR, 3, frame)[1].error_message == "NONE"


def test_record_slices_go_out_as_they_are() -> None:
    """A fetch response holds the log's own slices: nothing is joined on the way to the socket."""
    slices = [memoryview(b"abc"), memoryview(b"defg")]
    response = FetchResponse(responses=[FetchableTopicResponse("t", [PartitionData(records=slices)])])
    parts = encode_response(ApiKey.FETCH, 12, 1, response)
    assert [part for part in parts if isinstance(part, memoryview)] == slices
    _, back = decode_response(ApiKey.FETCH, 12, b"".join(parts)[4:])
    assert bytes(back.responses[0].partitions[0].records) == b"abcdefg"
